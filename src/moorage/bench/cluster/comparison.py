"""The comparison: every workload, round and scheduler once, with the results written as they come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.api.resources import PODS
from moorage.bench.cluster.bed import LABEL, MEASURED, PENDING, ClusterBed
from moorage.bench.cluster.results import ClusterResult, Key, ResultsFile, key_of
from moorage.bench.cluster.schedulers import CEILING, SchedulerCommand, SchedulerProcess
from moorage.bench.cluster.workloads import ClusterWorkload, Step
from moorage.client.lists import ChunkedLister
from moorage.framework.ports import ApiClient

POLL_SECONDS = 0.2
PAGE_SIZE = 500
Measurement = tuple[ClusterWorkload, int, SchedulerCommand]


def planned(
    workloads: Sequence[ClusterWorkload], rounds: int, schedulers: Sequence[SchedulerCommand]
) -> Iterator[Measurement]:
    """Return all measurements. Every second round has the opposite order, so that none is always first."""
    for workload in workloads:
        for number in range(rounds):
            for scheduler in schedulers if number % 2 == 0 else reversed(schedulers):
                yield workload, number, scheduler


class BindWatch:
    """Notes when each measured pod is seen bound for the first time, and the CPU time at the first and last bind."""

    def __init__(self, client: ApiClient, expected: int, cpu_seconds: Callable[[], float]) -> None:
        self._client, self._expected, self._cpu_seconds = client, expected, cpu_seconds
        self._bound: set[str] = set()
        self.first_at = self.last_at = 0.0
        self.first_cpu = self.last_cpu = 0.0

    @property
    def count(self) -> int:
        return len(self._bound)

    @property
    def is_complete(self) -> bool:
        return self.count >= self._expected

    async def has_all(self) -> bool:
        return self.is_complete

    async def run(self) -> None:
        """Follow the pods until cancelled. A watch that ends is opened again after a new list."""
        labels, fields = f"{LABEL}={MEASURED}", "spec.nodeName!="
        lister = ChunkedLister(self._client, PODS, PAGE_SIZE, {"label_selector": labels, "field_selector": fields})
        while not self.is_complete:
            try:
                items, version = await lister.snapshot("")
                for pod in items:
                    self._note(pod)
                watch = self._client.watch(PODS, resource_version=version, label_selector=labels, field_selector=fields)
                async for event in watch:
                    self._note(event.object)
            except MoorageError:
                await asyncio.sleep(POLL_SECONDS)

    def _note(self, pod: object) -> None:
        uid = getattr(pod, "uid", "")
        if not uid or uid in self._bound:
            return
        if not self._bound:
            self.first_at, self.first_cpu = time.monotonic(), self._cpu_seconds()
        self._bound.add(uid)
        if self.is_complete:
            self.last_at, self.last_cpu = time.monotonic(), self._cpu_seconds()


@dataclass
class SchedulerComparison:
    """Measurements on one cluster."""

    client: ApiClient
    bed: ClusterBed
    kubeconfig: Path
    folder: Path
    """For configurations; only the user can read it."""
    file: ResultsFile
    timeout: float
    """Seconds for the binds of one measurement."""
    show: Callable[[str], None] = lambda text: None
    """Called with what is being done now."""

    async def run(self, measurements: Sequence[Measurement], done: Callable[[ClusterResult], None]) -> None:
        """Make the measurements that have no result yet, and write each result."""
        for workload, number, scheduler in measurements:
            if key_of(workload, scheduler, number) not in self.file.results:
                result = await self.measure(workload, number, scheduler)
                self.file.add(result)
                done(result)

    async def measure(self, workload: ClusterWorkload, number: int, scheduler: SchedulerCommand) -> ClusterResult:
        """Schedule a workload once."""
        what = f"{workload.name}, round {number + 1}, {scheduler.name}"
        self.show(f"{what}: creating nodes and pods")
        await self.bed.prepare(workload)
        lease = f"{scheduler.name}-{number}-{time.time_ns()}"
        logs = self.file.path.parent / "logs"
        logs.mkdir(exist_ok=True)
        log = logs / f"{workload.name.replace('/', '-')}-{number + 1}-{scheduler.name}.log"
        log.unlink(missing_ok=True)
        process = SchedulerProcess(scheduler, self.kubeconfig, self.folder, log, self.bed.scheduler, lease)
        watch = BindWatch(self.client, workload.measured, process.cpu_seconds)
        background = [asyncio.create_task(watch.run())]
        try:
            await self._run_steps(workload, process, watch, background)
            self.show(f"{what}: scheduling")
            await self._until(
                watch.has_all,
                process,
                background,
                lambda: f"has bound {watch.count} of {workload.measured} pods of {workload.name}",
            )
            return _result(key_of(workload, scheduler, number), workload, process, watch)
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await process.stop()

    async def _run_steps(
        self,
        workload: ClusterWorkload,
        process: SchedulerProcess,
        watch: BindWatch,
        background: list[asyncio.Task[None]],
    ) -> None:
        """Do what comes after the preparation. The scheduler starts when all pods exist, or at a barrier."""
        for step in workload.steps:
            if step.opcode == "createPods" and not step.is_prepared:
                await self.bed.create_pods(step, MEASURED if step.is_measured else PENDING)
            elif step.opcode == "sleep":
                await asyncio.sleep(step.fields["seconds"])
            elif process.scheduler == CEILING:
                continue  # it tries no pods, so a barrier would not end
            elif step.opcode == "churn":
                background.append(asyncio.create_task(self._churn(step, watch)))
            elif step.opcode == "barrier" and not await self.bed.is_passed(step):
                process.start()
                state = f"has not passed the barrier in step {step.number} of {workload.name}"
                await self._until(partial(self.bed.is_passed, step), process, background, state.__str__)
        process.start()

    async def _until(
        self,
        is_done: Callable[[], Awaitable[bool]],
        process: SchedulerProcess,
        background: list[asyncio.Task[None]],
        state: Callable[[], str],
    ) -> None:
        """Wait for the scheduler. Raises a MoorageError if it ends, or is not done in time."""
        deadline = time.monotonic() + self.timeout
        while not await is_done():
            process.check()
            for task in background:
                if task.done():
                    task.result()
            if time.monotonic() > deadline:
                raise MoorageError(
                    f"{process.scheduler.name} {state()} in {self.timeout:g} s. Use more --nodes, fewer --pods or a "
                    f"longer --timeout. {process.log_end()}"
                )
            await asyncio.sleep(POLL_SECONDS)

    async def _churn(self, step: Step, watch: BindWatch) -> None:
        """Create objects in turn, and with `recreate` delete them again, until cancelled.

        The first bind starts it: otherwise a scheduler that starts slowly would find more of these objects.
        """
        while not watch.count:
            await asyncio.sleep(POLL_SECONDS)
        pause = float(step.fields.get("intervalMilliseconds") or 500) / 1000
        limit, recreate = int(step.fields.get("number") or 0), step.fields.get("mode") == "recreate"
        namespace = str(step.fields.get("namespace") or f"namespace-{step.number}")
        made = 0
        while not limit or recreate or made < limit * len(step.templates):
            deletions = []
            for _ in range(max(limit, 1) if recreate else 1):
                for template in range(len(step.templates)):
                    deletions.append(await self.bed.create_any(step, made, namespace, template))
                    made += 1
                    await asyncio.sleep(pause)
            for delete in deletions if recreate else ():
                await delete()
                await asyncio.sleep(pause)


def _result(key: Key, workload: ClusterWorkload, process: SchedulerProcess, watch: BindWatch) -> ClusterResult:
    binds = watch.count - 1
    return ClusterResult(
        *key,
        nodes=workload.nodes,
        pods=workload.measured,
        pods_per_second=binds / max(watch.last_at - watch.first_at, 1e-6),
        start_seconds=watch.first_at - process.started_at,
        cpu_ms_per_pod=1000 * (watch.last_cpu - watch.first_cpu) / binds,
        cpu_seconds=watch.last_cpu,
        peak_mb=process.peak_mb(),
    )
