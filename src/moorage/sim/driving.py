"""Drives one run: executes the workload's actions at their times, takes samples, and detects the end.

The engine runs on the same virtual loop. Time stands still while anything can run, so a moment after an
instant everything that belongs to it has happened.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, sleep

from moorage.api.errors import MoorageError
from moorage.scheduler.engine import Engine
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.measures import Sample, Sampler, SampleSeries
from moorage.sim.tally import RunTally
from moorage.sim.workload import Action, AddObject, Assertion, Settings, Workload

MOMENT = 1e-6
"""Seconds after which everything that belongs to an instant has happened."""
MAX_PROBLEMS = 1000
QUIET = 600.0
"""Seconds without a bind after which a run may end although pods are still retried in vain.

This is twice the time after which unschedulable pods are tried without an event. It matters, for example, in
a cluster without nodes.
"""
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">=": operator.ge, ">": operator.gt,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """The result of an assertion."""

    assertion: Assertion
    time: float
    found: float | None
    """The measured value, or None if there is no such measure."""
    known: tuple[str, ...] = ()
    """The existing measures, if there is no such measure."""

    @property
    def holds(self) -> bool:
        """Whether the assertion holds."""
        if self.found is None:
            return False
        return OPERATORS[self.assertion.op](self.found, self.assertion.value)

    def __str__(self) -> str:
        wanted = f"{self.assertion.measure} {self.assertion.op} {self.assertion.value:g}"
        if self.found is None:
            return f"{wanted} at {self.time:g} s: no such measure; known are {', '.join(self.known)}"
        return f"{wanted} at {self.time:g} s: the value is {self.found:g}"


@dataclass(slots=True)
class ProblemLog:
    """Actions that failed. The run continues after them."""

    kept: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, text: str) -> None:
        """Add a problem, unless there are too many already."""
        self.count += 1
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(text)


class Driver:
    """Connects everything that one run needs. Call `run` once."""

    def __init__(
        self,
        engine: Engine,
        cluster: SimulatedCluster,
        tally: RunTally,
        sampler: Sampler,
        settings: Settings,
        on_progress: Callable[[float, RunTally], None] | None = None,
    ) -> None:
        self._engine = engine
        self._cluster = cluster
        self._tally = tally
        self._sampler = sampler
        self._settings = settings
        self._on_progress = on_progress
        self.series = SampleSeries(settings.sample_interval)
        self.verdicts: list[AssertionResult] = []
        self.problems = ProblemLog()
        self._fed = False
        self._last_scheduled, self._quiet_since = 0, 0.0
        self.last: Sample = {}
        """The newest value of every measure."""
        tally.on_given_up = self._give_up

    async def run(self, workload: Workload, seed: int) -> None:
        """Run the workload to its end."""
        for obj in workload.start(seed):
            self._try(AddObject(obj))
        self._engine.drain()
        tasks = [
            asyncio.ensure_future(work)
            for work in (self._engine.run(), self._feed(workload, seed), self._check(), self._sample())
        ]
        scheduling, *_, sampling = tasks
        pending = set(tasks)
        try:
            while {scheduling, sampling} <= pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # raises the exception that ended it
        finally:
            await self._engine.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._tally.finish()
        self.last.update(self._sampler.waits())
        self._verdict_at_the_end()

    async def _feed(self, workload: Workload, seed: int) -> None:
        clock = self._cluster.clock
        for time, action in workload.actions(seed):
            if (ahead := time - clock.now()) > 0:
                await clock.sleep(ahead)
            self._try(action)
        self._fed = True

    async def _sample(self) -> None:
        """Take samples until the duration is over or nothing more will happen."""
        end, clock, number = self._settings.duration, self._cluster.clock, 0.0
        while True:
            time = number if end is None else min(number, end)
            await clock.sleep(max(0.0, time + MOMENT - clock.now()))
            self._take(time)
            if time == end or (end is None and self._is_over()):
                return
            number = time + self.series.interval

    async def _check(self) -> None:
        clock = self._cluster.clock
        timed = [each for each in self._settings.assertions if each.at is not None]
        for assertion in sorted(timed, key=lambda each: each.at or 0.0):
            await clock.sleep(max(0.0, (assertion.at or 0.0) + MOMENT - clock.now()))
            self.last.update(self._sampler.sample())
            self._judge(assertion, assertion.at or 0.0)

    def _take(self, time: float) -> None:
        self.last.update(sample := self._sampler.sample())
        self.series.add(time, {**sample, **self._sampler.recent_waits()})
        if self._on_progress is not None:
            self._on_progress(time, self._tally)

    def _is_over(self) -> bool:
        """Return whether everything has arrived, no running pod will end, and pending pods are tried only by
        the flush or in vain."""
        waiting, now = self._engine.queue.pending.counts(), self._cluster.clock.now()
        busy = waiting["active"] + waiting["backoff"] + len(self._engine.bindings)
        if not self._fed or self._cluster.ending or self._tally.scheduled != self._last_scheduled:
            self._last_scheduled, self._quiet_since = self._tally.scheduled, now
        return self._fed and not self._cluster.ending and (not busy or now - self._quiet_since > QUIET)

    def _verdict_at_the_end(self) -> None:
        judged = {verdict.assertion for verdict in self.verdicts}
        for assertion in self._settings.assertions:
            if assertion not in judged:
                self._judge(assertion, self._cluster.clock.now() - MOMENT)

    def _judge(self, assertion: Assertion, time: float) -> None:
        self.last.update(self._sampler.waits())
        found = self.last.get(assertion.measure)
        known = () if found is not None else tuple(sorted(self.last))
        self.verdicts.append(AssertionResult(assertion, round(time, 6), found, known))

    def _try(self, action: Action) -> None:
        try:
            action(self._cluster)
        except MoorageError as error:
            self.problems.add(f"at {self._cluster.clock.now():g} s: {error}")

    def _give_up(self, key: str) -> None:
        pod = self._cluster.pods.get(key)
        if pod is not None:
            self._cluster.delete_pod(pod)


class RealTimePace:
    """Limits virtual time to `speed` times real time, for `--speed`. A run that falls behind catches up."""

    def __init__(
        self, speed: float, now: Callable[[], float] = monotonic, sleep: Callable[[float], None] = sleep
    ) -> None:
        self._speed = speed
        self._now = now
        self._sleep = sleep
        self._began: float | None = None

    def __call__(self, virtual: float) -> None:
        """Wait until the virtual second is due. The first call starts the clock."""
        now = self._now()
        if self._began is None:
            self._began = now
        if (ahead := self._began + virtual / self._speed - now) > 0:
            self._sleep(ahead)
