"""Many runs: each configuration with each seed.

A run is described by file names, so that any process can do it. Its result is a folder. If a process dies,
its runs are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure, configure_file, find_plugin
from moorage.runtime.registry import look_in
from moorage.sim.backends import spread
from moorage.sim.driving import RealTimePace
from moorage.sim.loading import end_of, load_workload
from moorage.sim.results import SUMMARY, RunResult, read_result
from moorage.sim.simulation import OnProgress, Simulation, find_measure
from moorage.sim.tables import TableFormat

TRIES = 3
"""How often runs whose process died are tried in all."""


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """The origin of a workload."""

    file: Path
    mapping: Path | None = None
    as_scheduled: bool = False
    until: str = ""
    """When to end: a duration, or a time in a recording."""
    measures: Mapping[str, str] = field(default_factory=dict)
    """Custom measures, as `module:function`."""
    since: str = ""
    """Where in a recording to begin."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A scheduler configuration. Without a file, the default profile is used."""

    name: str
    file: Path | None = None
    plugins: tuple[str, ...] = ()
    """Plugins to register, as `module:Class`."""
    folders: tuple[str, ...] = ()
    """Folders in which modules are found."""
    extenders: bool = True
    """Whether the extenders of the configuration are called."""
    emulated_version: str = ""
    """The kube-scheduler to follow; empty for the default."""

    def configuration(self) -> Configuration:
        """Return the resolved configuration."""
        found = self._resolved()
        return found if self.extenders else found.without_extenders()

    def _resolved(self) -> Configuration:
        plugins = [find_plugin(reference, self.folders) for reference in self.plugins]
        if self.file is None:
            return configure(plugins=plugins, folders=self.folders, emulated_version=self.emulated_version)
        version = self.emulated_version
        return configure_file(self.file, plugins=plugins, folders=self.folders, emulated_version=version)


@dataclass(frozen=True, slots=True)
class Job:
    """One run."""

    source: WorkloadSource
    setup: Setup
    seed: int | None
    """None uses the seed of the workload."""
    folder: Path
    record: Path | None = None
    """A file in which to record all changes, for a replay."""
    speed: float | None = None
    """Virtual seconds per real second. None means as fast as possible."""
    form: TableFormat = TableFormat.CSV

    def into(self, folder: Path) -> Job:
        """Return the same job with another folder."""
        return replace(self, folder=folder)

    def run(self, on_progress: OnProgress | None = None) -> RunResult:
        """Do the run."""
        source = self.source
        look_in(self.setup.folders)
        workload = load_workload(source.file, source.mapping, as_scheduled=source.as_scheduled, since=source.since)
        simulation = Simulation(
            workload,
            config=self.setup.configuration(),
            seed=self.seed,
            until=end_of(workload, source.until),
            measures={name: find_measure(reference) for name, reference in source.measures.items()},
            name=self.setup.name,
        )
        pace = RealTimePace(self.speed) if self.speed is not None else None
        return simulation.run(self.folder, on_progress=on_progress, record=self.record, pace=pace, form=self.form)


def plan(
    source: WorkloadSource,
    setups: Sequence[Setup],
    seeds: Sequence[int | None],
    folder: Path,
    form: TableFormat = TableFormat.CSV,
) -> list[Job]:
    """Return a job for every configuration with every seed. A single job uses the folder itself."""
    if len(setups) == len(seeds) == 1:
        return [Job(source, setups[0], seeds[0], folder, form=form)]
    return [
        Job(source, setup, seed, folder / (setup.name if seed is None else f"{setup.name}-{seed}"), form=form)
        for setup in setups
        for seed in seeds
    ]


def run_jobs(jobs: Sequence[Job], workers: int, on_done: Callable[[], None], backend: str = "") -> list[RunResult]:
    """Do all jobs and return their results in order; see `backends.spread`."""
    for job in jobs:
        (job.folder / SUMMARY).unlink(missing_ok=True)  # the file marks a run as done
    for _ in range(TRIES):
        missing = [job for job in jobs if not (job.folder / SUMMARY).exists()]
        for _ in spread(missing, workers, backend) if missing else ():
            on_done()
    if missing := [job for job in jobs if not (job.folder / SUMMARY).exists()]:
        raise MoorageError(
            f"{len(missing)} of {len(jobs)} runs failed {TRIES} times because their process died, most "
            "likely for lack of memory. Try a smaller --jobs."
        )
    return [read_result(job.folder) for job in jobs]
