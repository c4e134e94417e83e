"""`moorage record`: what happens in a cluster, with its time, in a file that can be replayed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from moorage.api import quantity
from moorage.api.errors import MoorageError, QuantityError
from moorage.api.times import DurationError, parse_duration
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.cli import options
from moorage.cli.options import configured, warn
from moorage.cli.printing import console, fail, line
from moorage.client.connection import connect, default_user_agent, find
from moorage.sim.recording import Recording, RecordOptions, Written


def record(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to; .jsonl, or compressed .jsonl.gz or .jsonl.zst."
        ),
    ] = Path("record.jsonl.gz"),
    kubeconfig: options.Kubeconfig = "",
    context: options.Context = "",
    duration: Annotated[
        str, typer.Option(metavar="DURATION", help="Stop after this time; without, at Ctrl-C or SIGTERM.")
    ] = "",
    rotate: Annotated[
        str,
        typer.Option(metavar="SIZE|DURATION", help="Begin a new file after so many bytes or so much time."),
    ] = "",
    every: Annotated[
        str,
        typer.Option("--snapshots", metavar="DURATION", help="Keep a snapshot of the cluster this often."),
    ] = "",
    annotations: options.Annotations = False,
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
) -> None:
    """Watch a cluster and write what happens, for `moorage simulate`.

    Nodes, pods and every kind that the plugins of the configuration read: first what is there, then each
    change with its time. Environment, commands and annotations are left out. Reading is all that is done:
    credentials that may list and watch are enough.
    """
    own = configured(config, profile, plugins, plugin_path) or configure()
    try:
        size, seconds = _rotation(rotate)
        options = RecordOptions(
            output,
            duration=_seconds("--duration", duration),
            rotate_bytes=size,
            rotate_seconds=seconds,
            snapshot_seconds=_seconds("--snapshots", every),
            annotations=annotations,
        )
        with _progress() as show:
            written = asyncio.run(_record(own, options, kubeconfig, context, show))
    except MoorageError as error:
        fail(str(error))
    if not written.files:
        line("Nothing was recorded: the cluster had not been listed yet.")
        return
    parts = f" to {written.files[-1]}" if len(written.files) > 1 else ""
    line(f"{written.files[0]}{parts}: {_shown(written)}")


async def _record(
    own: Configuration,
    options: RecordOptions,
    kubeconfig: str,
    context: str,
    show: Callable[[Written], None],
) -> Written:
    credentials = await find(kubeconfig, context)
    clock = SystemClock()
    client = connect(credentials, clock, user_agent=default_user_agent("record"))
    recording = Recording(
        client,
        own.resources(),
        options,
        clock=clock,
        random=Random(),
        namespace=credentials.namespace or "default",
        on_progress=show,
    )
    task = asyncio.ensure_future(recording.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        await client.close()
    warn((*recording.cluster().gaps(own), *recording.troubles()))
    return recording.written


@contextmanager
def _progress() -> Iterator[Callable[[Written], None]]:
    """What is yielded shows how far the recording is, on a terminal."""
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("listing")
        yield lambda written: progress.update(task, description=_shown(written))


def _shown(written: Written) -> str:
    text = f"{written.objects} objects, {written.events} changes, {decimal(written.size)}"
    return f"{text}, {written.snapshots} snapshots" if written.snapshots else text


def _seconds(option: str, text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        raise MoorageError(f"{option}: {error}; write 90s, 15m or 1h30m") from error
    if seconds <= 0:
        raise MoorageError(f"{option}: {text} is no time; write 90s, 15m or 1h30m")
    return seconds


def _rotation(text: str) -> tuple[int | None, float | None]:
    """Bytes, or seconds. What can be both, such as 10m, is a time: there are no milli-bytes."""
    with suppress(DurationError):
        parse_duration(text)
        return None, _seconds("--rotate", text)
    if not text:
        return None, None
    try:
        size = quantity.value(text)
    except QuantityError as error:
        raise MoorageError(f"--rotate: {text!r} is neither a size nor a time; write 100Mi or 1h") from error
    if size <= 0:
        raise MoorageError(f"--rotate: {text!r} is no size; write 100Mi or 1h")
    return size, None
