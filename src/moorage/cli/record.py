"""`moorage record`: writes the changes of a cluster with their times to a recording for replays."""

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
from moorage.sim.recorder import ClusterRecorder, RecordingOptions, Written


def record(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Recording to write: .jsonl, .jsonl.gz or .jsonl.zst.")
    ] = Path("record.jsonl.gz"),
    kubeconfig: options.Kubeconfig = "",
    context: options.Context = "",
    duration: Annotated[
        str, typer.Option(metavar="DURATION", help="Stop after this time (default: at Ctrl-C or SIGTERM).")
    ] = "",
    rotate: Annotated[
        str, typer.Option(metavar="SIZE|DURATION", help="Start a new file after this size or time.")
    ] = "",
    every: Annotated[
        str,
        typer.Option("--snapshots", metavar="DURATION", help="Interval at which to save a snapshot of the cluster."),
    ] = "",
    annotations: options.Annotations = False,
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
) -> None:
    """Watch a cluster and record its changes, for `moorage simulate`.

    The recording contains nodes, pods and every kind that the plugins of the configuration read: first the
    existing objects, then each change with its time. Environment variables, commands and annotations are left
    out. The credentials need only list and watch.
    """
    own = configured(config, profile, plugins, plugin_path) or configure()
    try:
        size, seconds = _rotation(rotate)
        options = RecordingOptions(
            file,
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
        line("Nothing was recorded, because the cluster had not been listed yet.")
        return
    parts = f" to {written.files[-1]}" if len(written.files) > 1 else ""
    line(f"{written.files[0]}{parts}: {_shown(written)}")


async def _record(
    own: Configuration, options: RecordingOptions, kubeconfig: str, context: str, show: Callable[[Written], None]
) -> Written:
    credentials = await find(kubeconfig, context)
    clock = SystemClock()
    client = connect(credentials, clock, user_agent=default_user_agent("record"))
    recording = ClusterRecorder(
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
    """Show the progress on a terminal. Yields a function that updates it."""
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
        raise MoorageError(f"{option}: {error}; write 90s, 15m or 1h30m.") from error
    if seconds <= 0:
        raise MoorageError(f"{option}: {text} is not more than 0; write 90s, 15m or 1h30m.")
    return seconds


def _rotation(text: str) -> tuple[int | None, float | None]:
    """Return a size in bytes or a time in seconds. 10m is a time, because there are no millibytes."""
    with suppress(DurationError):
        parse_duration(text)
        return None, _seconds("--rotate", text)
    if not text:
        return None, None
    try:
        size = quantity.value(text)
    except QuantityError as error:
        raise MoorageError(f"--rotate: {text!r} is neither a size nor a time; write 100Mi or 1h.") from error
    if size <= 0:
        raise MoorageError(f"--rotate: {text!r} is not more than 0; write 100Mi or 1h.")
    return size, None
