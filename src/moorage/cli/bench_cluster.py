"""`moorage bench cluster`: compares schedulers on a real API server."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.app.clock import SystemClock
from moorage.bench.cluster.bed import ClusterBed
from moorage.bench.cluster.comparison import Measurement, SchedulerComparison, planned
from moorage.bench.cluster.results import ClusterResult, ResultsFile, SummaryRow, key_of, summarize
from moorage.bench.cluster.schedulers import CEILING, MOORAGE, child_kubeconfig, parse_beside
from moorage.bench.cluster.workloads import BUILT_IN, START, read_workloads
from moorage.cli import INTERRUPTED, options
from moorage.cli.printing import Form, OutputForm, console, fail, line, print_data
from moorage.client.connection import connect, default_user_agent, find


def cluster(
    workloads: Annotated[
        list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Workloads to measure (default: all).")
    ] = None,
    kubeconfig: options.Kubeconfig = "",
    context: options.Context = "",
    force: Annotated[
        bool, typer.Option("--force", help="Use a cluster that has other nodes. Pods may be placed on them.")
    ] = False,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COMMAND",
            help="Another scheduler to measure. Words in braces are replaced, see docs/benchmarks.md. Repeatable.",
        ),
    ] = None,
    without_moorage: Annotated[
        bool, typer.Option("--without-moorage", help="Measure only the schedulers of --beside.")
    ] = False,
    nodes: Annotated[int | None, typer.Option(min=1, help="Number of nodes (default: as in the workload).")] = None,
    pods: Annotated[
        int | None, typer.Option(min=0, help="Number of measured pods, or of running pods with --start.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each scheduler gets each workload.")] = 6,
    start: Annotated[
        bool, typer.Option("--start", help="Measure the seconds from the start of a process to its first bind.")
    ] = False,
    workload_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Workloads in the format of scheduler_perf, such as its own.")
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="Set a parameter of the workloads. Repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="A field or opcode of --workload-file to leave out. Repeatable."),
    ] = None,
    output_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="Where results and logs are kept. A run continues what is there.")
    ] = Path("bench-cluster"),
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for the binds of one measurement.")] = 600.0,
    output: OutputForm = Form.TABLE,
) -> None:
    """Compare Moorage with other schedulers on the API server of a cluster without other load.

    Creates nodes and pods with the label moorage.dev/bench, and deletes them at the end. Each scheduler gets the
    same pods, one scheduler after the other. Every result is also shown as a share of the rate at which the API
    server binds pods without a scheduler.
    """
    if start and (workloads or workload_file):
        fail("--start has its own workloads; leave WORKLOAD and --workload-file out")
    try:
        schedulers = [CEILING, *([] if without_moorage else [MOORAGE]), *map(parse_beside, beside or ())]
        if start:
            schedulers.remove(CEILING)
        given = {"nodes": nodes, "pods": pods, **dict(map(_parameter, params or ()))}
        chosen = read_workloads(
            workload_file or BUILT_IN,
            {name: value for name, value in given.items() if value is not None},
            START if start else workloads or (),
            ignore or (),
        )
        file = ResultsFile(output_dir)
        measurements = list(planned(chosen, rounds, schedulers))
        if start and sys.dont_write_bytecode:
            options.warn(["PYTHONDONTWRITEBYTECODE is set: Moorage may compile its modules at every start; unset it"])
        _measure(measurements, file, kubeconfig, context, force, timeout)
    except MoorageError as error:
        fail(str(error))
    rows = summarize(file, chosen, schedulers)
    if output is Form.TABLE:
        console().print(_table(rows, start))
    else:
        print_data([row.to_dict() for row in rows], output)


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise MoorageError(f"--param {text!r}: write NAME=VALUE.")
    return name, value


def _measure(
    measurements: Sequence[Measurement], file: ResultsFile, kubeconfig: str, context: str, force: bool, timeout: float
) -> None:
    """Make the measurements that are missing. Ctrl-C and SIGTERM end the command after everything was deleted."""
    columns = (TextColumn("{task.description:50}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    missing = [found for found in measurements if key_of(found[0], found[2], found[1]) not in file.results]
    if len(missing) < len(measurements):
        line(f"{file.path} has {len(measurements) - len(missing)} of {len(measurements)} measurements.", stderr=True)
    if not missing:
        return
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("connecting", total=len(missing))

        def done(result: ClusterResult) -> None:
            progress.console.print(_shown(result), soft_wrap=True)
            progress.advance(task)

        def show(text: str) -> None:
            progress.update(task, description=text)

        try:
            asyncio.run(_compare(missing, file, kubeconfig, context, force, timeout, show, done))
        except (KeyboardInterrupt, asyncio.CancelledError):
            line(f"Interrupted. A run with --output-dir {file.path.parent} continues here.", stderr=True)
            raise typer.Exit(INTERRUPTED) from None


async def _compare(
    missing: Sequence[Measurement],
    file: ResultsFile,
    kubeconfig: str,
    context: str,
    force: bool,
    timeout: float,
    show: Callable[[str], None],
    done: Callable[[ClusterResult], None],
) -> None:
    current = asyncio.current_task()
    assert current is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, current.cancel)
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:
        path = child_kubeconfig(kubeconfig, context, Path(folder))
        client = connect(await find(str(path)), SystemClock(), qps=0, user_agent=default_user_agent("bench"))
        bed = ClusterBed(client, secrets.token_hex(3))
        try:
            await bed.begin(force=force)
            try:
                await SchedulerComparison(client, bed, path, Path(folder), file, timeout, show).run(missing, done)
            finally:
                show("deleting nodes and pods")
                await bed.remove()
        finally:
            await client.close()


def _shown(result: ClusterResult) -> str:
    return (
        f"{result.workload}, round {result.round + 1}, {result.scheduler}: {result.pods_per_second:.0f} pods/s, "
        f"first bind after {result.start_seconds:.2f} s, {result.cpu_ms_per_pod:.2f} CPU ms/pod, "
        f"{result.peak_mb:.0f} MB"
    )


def _table(rows: list[SummaryRow], start: bool) -> Table:
    rate = "start_seconds" if start else "pods_per_second"
    few = any(row.figures[rate].is_range for row in rows)
    table = Table(title=f"medians; brackets hold {'the lowest and highest round' if few else 'a 95 % interval'}")
    table.add_column("workload", overflow="fold")
    table.add_column("scheduler", no_wrap=True)
    names = ("nodes/running", "seconds to first bind") if start else ("nodes/pods", "pods/s")
    for heading in (*names, "Moorage x", "peak\nMB", *(() if start else ("of\nceiling", "CPU\nms/pod", "CPU x"))):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        shown = [
            f"{row.nodes}/{row.running if start else row.pods}",
            str(row.figures[rate]),
            str(row.moorage_times.get(rate, "-")),
            f"{row.figures['peak_mb'].median:.0f}",
        ]
        if not start:
            cpu = row.moorage_times.get("cpu_ms_per_pod")
            shown.append(f"{100 * row.ceiling_share.median:.0f} %" if row.ceiling_share else "-")
            shown.append(f"{row.figures['cpu_ms_per_pod'].median:.2f}")
            shown.append(f"{cpu.median:.2f}" if cpu else "-")
        table.add_row(row.workload, row.scheduler, *shown)
    return table
