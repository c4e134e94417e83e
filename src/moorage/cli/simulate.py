"""`moorage simulate`: runs a workload in virtual time with one or several scheduler configurations."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.api.times import format_duration
from moorage.app.configuration import plugin_folders
from moorage.cli import options
from moorage.cli.complaining import complain
from moorage.cli.printing import Form, OutputForm, console, current_folder, fail, line, print_data
from moorage.config import ConfigError
from moorage.sim.comparing import DIFFERENCES, REPORT, Comparison, compare
from moorage.sim.jobs import Job, Setup, WorkloadSource, plan, run_jobs
from moorage.sim.results import RunResult
from moorage.sim.tables import TableFormat, check_format
from moorage.sim.tally import RunTally

SUMMARY = (
    "scheduled",
    "pending",
    "preempted",
    "attempts",
    "wait.p50",
    "wait.p99",
    "utilisation.cpu (mean)",
    "utilisation.memory (mean)",
    "nodes",
)
"""The measures of the summary, in order, after those of --measure."""
MAX_ROWS = 9
"""Measures in the summary, which has six more lines: the title, four of the table, and where the rest is."""
SHOWN = 20
"""Maximum printed problems, and pods placed differently."""


def simulate(
    workload: Annotated[
        Path,
        typer.Argument(
            help="A scenario (.yaml), a recording (.jsonl, .jsonl.gz, .jsonl.zst) or a trace (.csv, .csv.gz)."
        ),
    ],
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="KubeSchedulerConfiguration (default: the default profile). Repeatable: the others are "
            "compared with the first.",
        ),
    ] = None,
    mapping: Annotated[Path | None, typer.Option(metavar="FILE", help="File that maps the columns of a trace.")] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Seed for all randomness. Repeatable: one run per seed.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from the first.")] = 1,
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME|DURATION", help="Stop at this time of a recording, or after a duration such as 1h30m."
        ),
    ] = "",
    speed: Annotated[
        float | None,
        typer.Option(metavar="N", help="Virtual seconds per real second (default: as fast as possible). One run only."),
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME|DURATION", help="Start at this time of a recording, or this long after its beginning."
        ),
    ] = "",
    as_scheduled: Annotated[
        bool, typer.Option("--as-scheduled", help="Keep the placements of a recording instead of scheduling.")
    ] = False,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME=MODULE:FUNCTION", help="Custom measure. Repeatable.")
    ] = None,
    plugins: Annotated[
        list[str] | None, typer.Option("--plugin", metavar="MODULE:CLASS", help="Register a plugin. Repeatable.")
    ] = None,
    plugin_path: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Folder of plugin modules (default: the current folder). Repeatable."),
    ] = None,
    no_extenders: options.NoExtenders = False,
    folder: Annotated[
        Path | None, typer.Option("--output-dir", metavar="DIR", help="Folder in which to keep the results.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Record all changes to this file (.jsonl, .jsonl.gz, .jsonl.zst). One run only."
        ),
    ] = None,
    form: Annotated[
        TableFormat, typer.Option("--format", help="Format of the tables in the results.")
    ] = TableFormat.CSV,
    output: OutputForm = Form.TABLE,
    emulated_version: options.EmulatedVersion = "",
    jobs: Annotated[
        int, typer.Option(help="Number of concurrent runs, each in its own process. -1 means one per core.")
    ] = -1,
    backend: Annotated[
        str, typer.Option(metavar="dask://HOST:PORT|ray://HOST:PORT", help="Do the runs on a Dask or Ray cluster.")
    ] = "",
) -> None:
    """Run a workload with the real scheduler in virtual time, and measure.

    The scheduler, its queue and its plugins are those of [bold]moorage run[/bold]. The cluster is in memory,
    and time jumps to the next event. With several --config, measures and placements are compared with those
    of the first. The exit code is 1 if an assertion of the scenario fails.
    """
    options.check_version(emulated_version)
    try:
        check_format(form)
        folders = tuple(plugin_folders(plugin_path) if plugin_path else current_folder())
        own = _measures(measure or [])
        source = WorkloadSource(workload, mapping, as_scheduled, until, own, since)
        setups = _setups(config or [], tuple(plugins or ()), folders, not no_extenders, emulated_version)
        for setup in setups:
            setup.configuration()  # finds errors before the first run
        with _kept(folder) as results_in:
            planned = plan(source, setups, _seeds(seed or [], seeds), results_in, form)
            if record is not None or speed is not None:
                planned = [_single(planned, backend, record, speed)]
            results = _run(planned, jobs, backend)
            comparison = compare(results)
            if folder is not None:
                comparison.write(folder, workload.name, form)
            _print(results, comparison, output, form, folder, list(own))
    except ConfigError as error:
        complain(error)
    except MoorageError as error:
        fail(str(error))
    if failed := [(result, text) for result in results for text in result.failed]:
        for result, text in failed:
            line(f"Assertion failed ({result.name}, seed {result.seed}): {text}", style="red", stderr=True)
        raise typer.Exit(1)


def _single(planned: list[Job], backend: str, record: Path | None, speed: float | None) -> Job:
    """Return the only run, with the options that only a single local run can have."""
    option = "--record" if record is not None else "--speed"
    if len(planned) > 1 or backend:
        runs = f"{len(planned)} runs on {backend}" if backend else f"{len(planned)} runs"
        raise MoorageError(f"{option} needs a single local run, but there are {runs}. Use one --config and one --seed.")
    if speed is not None and not speed > 0:
        raise MoorageError(f"--speed: {speed:g} is not more than 0; 10 means ten virtual seconds per real second.")
    return dataclasses.replace(planned[0], record=record, speed=speed)


def _measures(given: list[str]) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, reference = each.partition("=")
        if not (name and equals and reference):
            raise MoorageError(f"--measure: {each!r} must have the form NAME=MODULE:FUNCTION.")
        found[name] = reference
    return found


def _setups(
    files: list[Path], plugins: tuple[str, ...], folders: tuple[str, ...], extenders: bool, emulated_version: str
) -> list[Setup]:
    """Return a setup per file, named after the file without its suffix."""
    if not files:
        return [Setup("default", None, plugins, folders, extenders, emulated_version)]
    names: dict[str, int] = {}
    made = []
    for file in files:
        number = names[file.stem] = names.get(file.stem, 0) + 1
        name = file.stem if number == 1 else f"{file.stem}-{number}"
        made.append(Setup(name, file, plugins, folders, extenders, emulated_version))
    return made


def _seeds(given: list[int], number: int) -> list[int | None]:
    if number == 1:
        return [*given] or [None]
    if len(given) > 1:
        raise MoorageError("--seeds counts from a single --seed. Remove --seeds, or give only one --seed.")
    first = given[0] if given else 0
    return [*range(first, first + number)]


@contextmanager
def _kept(folder: Path | None) -> Iterator[Path]:
    """Yield the folder for results: the given one, or a temporary one."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="moorage-simulate-") as made:
            yield Path(made)


def _run(planned: list[Job], jobs: int, backend: str) -> list[RunResult]:
    if len(planned) == 1 and not backend:
        with _time_bar() as progress:
            return [planned[0].run(progress)]
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("runs", total=len(planned))
        done: Callable[[], None] = lambda: progress.advance(task)  # noqa: E731 (a name makes it readable)
        if jobs == 1 and not backend:
            results = []
            for job in planned:
                results.append(job.run())
                done()
            return results
        return run_jobs(planned, jobs, done, backend)


@contextmanager
def _time_bar() -> Iterator[Callable[[float, RunTally], None]]:
    """Show the virtual time. Yields a function that updates it."""
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting")

        def show(time: float, tally: RunTally) -> None:
            text = f"{format_duration(round(time))}: {tally.scheduled} scheduled, {tally.pending} pending"
            progress.update(task, description=text)

        yield show


def _print(
    results: list[RunResult],
    comparison: Comparison,
    output: Form,
    form: TableFormat,
    folder: Path | None,
    own: Collection[str],
) -> None:
    if output is not Form.TABLE:
        runs = [result.summary() for result in results]
        print_data({"runs": runs, "comparison": comparison.to_dict()}, output)
        return
    for result in results:
        for problem in result.problems[:SHOWN]:
            line(f"{result.name}, seed {result.seed}: {problem}", style="yellow", stderr=True)
        if result.problem_count > SHOWN:
            more = result.problem_count - SHOWN
            line(f"{result.name}, seed {result.seed}: {more} more problems", style="yellow", stderr=True)
    if len(comparison.names) > 1:
        _print_differences(comparison, form)
    _print_summary(comparison, folder, own)


def _print_summary(comparison: Comparison, folder: Path | None, own: Collection[str]) -> None:
    """Print the measures that most people look at first, and where the others are: at most 15 lines."""
    heading, *rows = comparison.table()
    ranks = {label: rank for rank, label in enumerate([*own, *SUMMARY])}
    known = [row for row in rows if row[0].removesuffix(" (mean)") in own or row[0] in ranks]
    known.sort(key=lambda row: ranks.get(row[0], ranks.get(row[0].removesuffix(" (mean)"), 0)))
    console().print(_table(comparison, heading, known[:MAX_ROWS]))
    if more := len(rows) - len(known[:MAX_ROWS]):
        where = f"in {folder / REPORT}" if folder else "kept with --output-dir DIR, and printed with --output json"
        line(f"{more} more measures are {where}.")


def _table(comparison: Comparison, heading: list[str], rows: list[list[str]]) -> Table:
    run = comparison.results[comparison.names[0]][0]
    seeds = len(comparison.results[comparison.names[0]])
    title = f"{format_duration(round(run.virtual_seconds, 3))} of virtual time, {run.real_seconds:.1f} s"
    table = Table(title=f"{title}, {seeds} seeds" if seeds > 1 else title)
    measure, *headings = heading
    table.add_column(measure)
    for each in headings:
        table.add_column(each, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _print_differences(comparison: Comparison, form: TableFormat) -> None:
    found = list(islice(comparison.differences(), SHOWN + 1))
    if not found:
        line("Every pod is on the same node with all configurations.")
        return
    table = Table(title="Pods placed differently")
    for heading in ("seed", "pod", comparison.names[0], "configuration", "node", "decided by"):
        table.add_column(heading)
    for each in found[:SHOWN]:
        table.add_row(
            str(each.seed), each.pod, each.first or "pending", each.configuration, each.node or "pending",
            each.decided_by,
        )  # fmt: skip
    console().print(table)
    if len(found) > SHOWN:
        line(f"There are more. Use --output-dir DIR to get all of them in {DIFFERENCES}.{form}.")
