"""`moorage bench`: measures the speed of Moorage on this machine."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.api.times import format_duration
from moorage.app.configuration import Configuration, plugin_folders
from moorage.bench import simulating
from moorage.bench.hostile import LARGEST, SMALLEST, STEPS, Growth, HostileBench
from moorage.bench.hostile_pods import FIELDS
from moorage.bench.measuring import EngineResult, Measurement
from moorage.bench.simulating import SimulationResult
from moorage.bench.workloads import WORKLOADS, EngineWorkload
from moorage.cli import bench_cluster, options
from moorage.cli.options import configured
from moorage.cli.printing import Form, OutputForm, console, current_folder, fail, print_data
from moorage.runtime.registry import look_in

app = typer.Typer(
    name="bench", add_completion=False, no_args_is_help=True, help="Measure the speed of Moorage on this machine."
)

app.command("cluster")(bench_cluster.cluster)

Seed = Annotated[int, typer.Option(help="Seed for the cluster and the pods.")]


@app.command()
def engine(
    workloads: Annotated[
        list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Workloads to measure (default: all).")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes.")] = 5000,
    pods: Annotated[int, typer.Option(min=0, help="Number of running pods.")] = 20000,
    measure: Annotated[int, typer.Option(min=1, help="Number of pods to schedule per workload.")] = 500,
    more: Annotated[
        str,
        typer.Option(
            "--workloads",
            metavar="MODULE",
            help="A Python module with a tuple WORKLOADS, to measure instead of the built-in ones. It is "
            "looked for in --plugin-path, or in the current folder.",
        ),
    ] = "",
    seed: Seed = 0,
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
    output: OutputForm = Form.TABLE,
) -> None:
    """Schedule pods of several kinds on a large cluster in memory, without an API server.

    The time of a pod runs from its pop until it is assumed on its node, including the decision record. Blocks
    of pods alternate with blocks of a bare NumPy kernel; the ratio of the two can be compared between
    machines. One of a hundred placements is checked against a fresh evaluation. With --config, the profile of
    a configuration is measured, including its custom plugins.
    """
    own = configured(config, profile, plugins, plugin_path)
    chosen = _choose(workloads or [], _workloads_of(more, plugin_path) if more else WORKLOADS)
    results = [_measure(workload, nodes, pods, measure, seed, own) for workload in chosen]
    if output is not Form.TABLE:
        print_data([result.to_dict() for result in results], output)
        return
    console().print(_table(results, chosen))


@app.command()
def simulate(
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes.")] = 5000,
    plain: Annotated[
        int, typer.Option(min=0, help="Number of pods that arrive at once, each with its own template.")
    ] = 100_000,
    day: Annotated[int, typer.Option(min=0, help="Number of short pods over a day of virtual time.")] = 1_000_000,
    seed: Seed = 0,
    output: OutputForm = Form.TABLE,
) -> None:
    """Measure simulations with many pods. A number of 0 skips a simulation.

    The time includes everything: creating the pods, the queue, the scheduling and binding cycles, samples,
    and the files of the result.
    """
    results = []
    for name, make, pods in (("plain", simulating.PlainPods, plain), ("day", simulating.day, day)):
        if pods:
            with progress_bar(name, pods) as advance:
                try:
                    results.append(simulating.measure(name, make(nodes, pods), nodes, seed, advance))
                except MoorageError as error:
                    fail(f"{name}: {error}")
    if output is not Form.TABLE:
        print_data([result.to_dict() for result in results], output)
        return
    console().print(_simulation_table(results, nodes))


@app.command()
def hostile(
    fields: Annotated[
        list[str] | None, typer.Argument(metavar="[FIELD]...", help="Fields of a pod to grow (default: all).")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes.")] = 5000,
    entries: Annotated[
        int, typer.Option(min=SMALLEST, help="Largest number of entries of a field; a pod has at most 1.5 MB.")
    ] = LARGEST,
    limit: Annotated[
        float, typer.Option(min=0.1, help="Seconds that one size may take; larger sizes are left out.")
    ] = 20.0,
    seed: Seed = 0,
    output: OutputForm = Form.TABLE,
) -> None:
    """Measure how the time of an attempt grows with what a tenant writes into a pod.

    Each list or map of a pod grows up to thousands of entries. An exponent of 1 means that twice the entries
    take twice the CPU time. The exit code is 1 if an exponent is above 1.1.
    """
    unknown = [name for name in fields or [] if name not in FIELDS]
    if unknown:
        fail(f"There is no field {unknown[0]!r}; known fields are {', '.join(FIELDS)}.")
    chosen = fields or list(FIELDS)
    bench = HostileBench(nodes, entries, limit, seed)
    growths: list[Growth] = []
    with progress_bar("hostile", len(chosen)) as advance:
        for name in chosen:
            growths += asyncio.run(bench.grow(name))
            advance(1)
    if output is Form.TABLE:
        console().print(_growth_table(growths, nodes))
    else:
        print_data([growth.to_dict() for growth in growths], output)
    steep = [f"{growth.field} ({growth.step})" for growth in growths if growth.is_too_steep]
    if steep:
        fail(f"The time grows faster than the number of entries: {', '.join(steep)}.")


def _growth_table(growths: list[Growth], nodes: int) -> Table:
    """Return one row per field, and more for the steps that take long."""
    table = Table(title=f"{nodes} nodes, one core, CPU milliseconds")
    table.add_column("field")
    table.add_column("step")
    for heading in ("entries", "milliseconds", "exponent"):
        table.add_column(heading, justify="right")
    for growth in growths:
        if growth.exponent is not None or growth.step == STEPS[0]:
            table.add_row(
                growth.field,
                growth.step,
                " ".join(map(str, growth.sizes)) + (" (stopped)" if growth.stopped else ""),
                " ".join(f"{1000 * seconds:.3g}" for seconds in growth.seconds),
                "-" if growth.exponent is None else f"{growth.exponent:.2f}",
            )
    return table


def _simulation_table(results: list[SimulationResult], nodes: int) -> Table:
    table = Table(title=f"{nodes} nodes, one core")
    for heading in ("simulation", "description"):
        table.add_column(heading)
    for heading in ("pods", "virtual time", "seconds", "CPU seconds", "pods/s", "peak RSS MB"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            result.workload,
            simulating.DESCRIPTIONS[result.workload],
            str(result.pods),
            format_duration(round(result.virtual_seconds)),
            f"{result.seconds:.1f}",
            f"{result.cpu_seconds:.1f}",
            f"{result.pods_per_second:.0f}",
            f"{result.peak_rss_mb:.0f}",
        )
    return table


def _workloads_of(module: str, plugin_path: list[str] | None) -> tuple[EngineWorkload, ...]:
    """Import the workloads of a module; the built-in ones can be named beside them."""
    look_in(plugin_folders(plugin_path) if plugin_path else current_folder())
    try:
        found = importlib.import_module(module).WORKLOADS
    except (ImportError, AttributeError) as error:
        fail(f"--workloads {module}: {error}; name a module that defines WORKLOADS")
    return tuple(found)


def _choose(names: list[str], offered: tuple[EngineWorkload, ...]) -> list[EngineWorkload]:
    known = {workload.name: workload for workload in (*WORKLOADS, *offered)}
    unknown = [name for name in names if name not in known]
    if unknown:
        fail(f"There is no workload {unknown[0]!r}; known workloads are {', '.join(known)}.")
    return [known[name] for name in names] or list(offered)


def _measure(
    workload: EngineWorkload, nodes: int, pods: int, measure: int, seed: int, own: Configuration | None
) -> EngineResult:
    with progress_bar(workload.name, workload.attempts or measure) as advance:
        try:
            measurement = Measurement(workload, nodes, pods, measure, seed, own)
            return asyncio.run(measurement.run(advance))
        except MoorageError as error:
            fail(f"Workload {workload.name}: {error}")


@contextmanager
def progress_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar. Yields a function that advances it."""
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda done: progress.advance(task, done)


def _table(results: list[EngineResult], workloads: list[EngineWorkload]) -> Table:
    table = Table(title=f"{max(result.nodes for result in results)} nodes, one core" if results else None)
    for heading in ("workload", "description"):
        table.add_column(heading)
    for heading in ("running", "µs median", "µs p99", "x kernel", "pods/s", "RSS MB", "checked"):
        table.add_column(heading, justify="right")
    for result, workload in zip(results, workloads, strict=True):
        table.add_row(
            result.workload,
            workload.description,
            str(result.pods),
            f"{result.median_us:.0f}",
            f"{result.p99_us:.0f}",
            f"{result.multiple:.2f}",
            f"{result.pods_per_second:.0f}",
            f"{result.rss_mb:.0f}",
            str(result.checked),
        )
    return table
