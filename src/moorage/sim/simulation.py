"""`moorage.Simulation`: runs a workload with a scheduler configuration in virtual time."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.api.resources import Unstructured
from moorage.app.clock import SystemClock
from moorage.app.configuration import ConfigSource, Configuration, configure_any
from moorage.app.gc_tuning import production_gc
from moorage.extender.asking import asked_extenders
from moorage.framework.points import Plugin
from moorage.framework.ports import EventRecorder, Extender
from moorage.scheduler.assembly import assemble
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Ports
from moorage.scheduler.records import RecordRing
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.driving import Driver, RealTimePace
from moorage.sim.loading import load_workload, read_scenario
from moorage.sim.loop import VirtualClock, VirtualLoop, finish
from moorage.sim.measures import OwnMeasure, Sampler
from moorage.sim.recordings import ChangeRecorder
from moorage.sim.results import PLACED, PLACEMENTS, RunResult
from moorage.sim.tables import ResultTable, TableFormat
from moorage.sim.tally import AttemptRing, PlacedPod, RunTally
from moorage.sim.workload import Settings, Workload

SPIN_LIMIT = 1_000_000_000
"""Callbacks at one instant after which the run counts as a livelock. A pod takes about ten."""
OnProgress = Callable[[float, RunTally], None]
"""Called with the virtual time and the counts so far."""


class Simulation:
    """A workload and a scheduler configuration.

            result = Simulation(Path("scenario.yaml"), config=Path("scheduler.yaml"), seed=1).run()
            assert result["pending"] == 0

    `workload` is the path of a scenario or recording, the text of a scenario, or a `Workload`. `config` is a
    path, a text, a resolved Configuration, or None for the default profile. `measures` are functions of a
    `ClusterView` by name, in addition to those of the workload. `until` ends the run at a virtual second.
    """

    def __init__(
        self,
        workload: Path | str | Workload,
        *,
        config: ConfigSource = None,
        plugins: Iterable[type[Plugin]] = (),
        seed: int | None = None,
        until: float | None = None,
        measures: Mapping[str, OwnMeasure] | None = None,
        name: str = "",
    ) -> None:
        self.workload = _workload(workload)
        self.configuration = configure_any(config, plugins=plugins)
        self.seed = self.workload.settings.seed if seed is None else seed
        self.name = name or (config.stem if isinstance(config, Path) else "default")
        self._settings = _until(self.workload.settings, until)
        own = {known: find_measure(spelled) for known, spelled in self._settings.measures.items()}
        self._measures = {**own, **(measures or {})}

    def run(
        self,
        folder: Path | None = None,
        *,
        on_progress: OnProgress | None = None,
        record: Path | None = None,
        pace: RealTimePace | None = None,
        form: TableFormat = TableFormat.CSV,
    ) -> RunResult:
        """Run the simulation from start to end.

        The result is written to the folder or, without one, kept in memory. `record` is a file in which all
        changes of objects are recorded for a replay. Without a pace, the run is as fast as possible.
        """
        with ExitStack() as stack:
            placed: list[PlacedPod] | None = None
            if folder is None:
                placed = []
                note = placed.append
            else:
                folder.mkdir(parents=True, exist_ok=True)
                note = stack.enter_context(ResultTable(folder, PLACEMENTS, PLACED, form)).add
            result = self._run(note, on_progress, record, pace)
        result.placed = placed
        if folder is not None:
            result.write(folder, form)
        return result

    def _run(
        self,
        note: Callable[[PlacedPod], None],
        on_progress: OnProgress | None,
        record: Path | None,
        pace: RealTimePace | None,
    ) -> RunResult:
        with asked_extenders(self.configuration.config.extenders, SystemClock()) as extenders:
            result = self._run_with(extenders, note, on_progress, record, pace)
        for extender in extenders:
            if extender.problem:
                result.problems.append(f"An extender failed: {extender.problem}")
                result.problem_count += 1
        return result

    def _run_with(
        self,
        extenders: Sequence[Extender],
        note: Callable[[PlacedPod], None],
        on_progress: OnProgress | None,
        record: Path | None,
        pace: RealTimePace | None,
    ) -> RunResult:
        began = time.perf_counter()
        loop = VirtualLoop(spin_limit=SPIN_LIMIT)
        loop.on_move = pace
        try:
            asyncio.set_event_loop(loop)
            clock = VirtualClock(loop, epoch=self._settings.epoch)
            cluster = SimulatedCluster(clock, grace=self._settings.grace, adopts_pods=self._settings.adopts_pods)
            tally = RunTally(clock, note, self._settings.attempts)
            records = AttemptRing(tally.attempted)
            engine = simulated_engine(self.configuration, cluster, self.seed, tally, records, extenders)
            cluster.watchers.append(tally)
            sampler = Sampler(engine, cluster, tally, self._measures)
            driver = Driver(engine, cluster, tally, sampler, self._settings, on_progress)
            with ExitStack() as stack:
                if record is not None:
                    cluster.post = stack.enter_context(ChangeRecorder(record, clock, cluster.post)).post
                stack.enter_context(production_gc())
                loop.run_until_complete(driver.run(self.workload, self.seed))
        finally:
            finish(loop)
            asyncio.set_event_loop(None)
            loop.close()
        if loop.failures:
            raise BaseExceptionGroup("failures of background tasks", loop.failures)
        for kind, number in cluster.set_aside.items():
            driver.problems.add(f"{number} objects of the kind {kind} were ignored because no plugin reads them")
        return RunResult(
            name=self.name,
            seed=self.seed,
            measures=driver.last,
            series=driver.series.columns,
            virtual_seconds=driver.series.columns["time"][-1],
            real_seconds=time.perf_counter() - began,
            verdicts=[{"holds": verdict.holds, "text": str(verdict)} for verdict in driver.verdicts],
            problems=driver.problems.kept,
            problem_count=driver.problems.count,
        )


def find_measure(reference: str) -> OwnMeasure:
    """Return the function of `module:function`."""
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise MoorageError(
            f"measure {reference!r}: {error}; write module:function, and have the module's folder on the import path"
        ) from error
    if not callable(found):
        raise MoorageError(f"Measure {reference!r} is not a function; it must take a ClusterView.")
    measure: OwnMeasure = found
    return measure


def _until(settings: Settings, until: float | None) -> Settings:
    if until is None or (settings.duration is not None and settings.duration <= until):
        return settings
    return dataclasses.replace(settings, duration=until)


def _workload(given: Path | str | Workload) -> Workload:
    if isinstance(given, Path):
        return load_workload(given)
    return read_scenario(given, "<scenario>", Path()) if isinstance(given, str) else given


def simulated_engine(
    configured: Configuration,
    cluster: SimulatedCluster,
    seed: int,
    recorder: EventRecorder,
    records: RecordRing | None = None,
    extenders: Sequence[Extender] = (),
) -> Engine:
    """Build an engine with all profiles of the configuration, connected to a simulated cluster.

    The engine's writes change the cluster, and the cluster posts the changes back to the engine.
    """
    ports = Ports(cluster, cluster.clock, random.Random(seed), recorder, extenders=extenders)
    engine = assemble(
        configured.config,
        configured.profiles,
        configured.registry,
        ports,
        records=records,
        behaviour=configured.behaviour,
    )
    cluster.post, cluster.profiles = engine.inbox.post, engine.profiles
    for plugin in configured.plugins():
        for need in plugin.needs:
            if need.resource.type is Unstructured:
                cluster.custom[need.resource.kind, need.resource.api_version] = need.resource
    return engine
