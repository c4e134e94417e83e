"""How the time of an attempt grows with what one tenant writes into a pod: `moorage bench hostile`.

Each field of `hostile_pods` grows in steps. The CPU time of all that one pod makes the scheduler do is measured:

    attempt    read the pod, queue it, sign it, and try it once on a cluster with room
    refused    the same for a pod that fits on no node, with its message, event and status
    event      hints about the refused pod, after a change of a node and the deletion of a running pod
    preempts   the same as `refused`, for a pod that could run if others went
    neighbour  the attempt of another tenant's small pod, and the arrival and departure of the pod on a node

The exponent compares the largest size with the ones before it: 1 means that twice the entries take twice the time. Work
that is certainly proportional is measured too, because machines need more than twice the time for twice the objects.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

import msgspec

from moorage.api import decoding
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.bench.hostile_pods import FIELDS, MAX_BYTES, Fill, Json
from moorage.bench.world import BenchWorld, raw_pod
from moorage.framework.events import NODE, POD, Registration
from moorage.framework.ports import Change
from moorage.scheduler.failing import Failure

MAX_EXPONENT = 1.1
NOISE_SECONDS = 0.1
"""Shorter times say nothing about growth: they depend on the caches of the processor. Work that grows with the square
of 10,000 entries takes longer."""
SMALLEST, LARGEST = 10, 10_000
REPEATS = 3
SECOND_LOOKS = 2
"""How often the largest sizes are measured again if the growth seems too steep."""
_LONG_SECONDS = 2.0
"""A pod that takes longer is measured once."""
_OBJECTS = 4
"""Objects of the proportional work for each entry."""
_FITTED = 3
"""The number of the largest sizes that the exponent is computed from."""
STEPS = ("attempt", "refused", "event", "preempts", "neighbour")
TENANT, NEIGHBOUR = "hostile", "neighbour"


@dataclass(frozen=True, slots=True)
class Growth:
    """The CPU seconds of one step by the number of entries of a field."""

    field: str
    step: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    exponent: float | None
    """None if the time stays below the noise."""
    stopped: bool = False
    """Whether larger sizes would have taken too long."""

    @property
    def is_too_steep(self) -> bool:
        return self.exponent is not None and round(self.exponent, 2) > MAX_EXPONENT

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def exponent_of(sizes: Sequence[int], seconds: Sequence[float], yardstick: Sequence[float]) -> float | None:
    """Return the exponent of growth towards the largest size; None if the times are noise.

    It is the lower one of the exponents from the two sizes before. `yardstick` are the times of work that is
    proportional to the sizes. What these grow faster than that is the machine's, and is taken off.
    """
    found = []
    for size, before, plain in list(zip(sizes, seconds, yardstick, strict=True))[-_FITTED:-1]:
        if before >= NOISE_SECONDS:
            ratio = math.log(sizes[-1] / size)
            surplus = math.log(yardstick[-1] / plain) / ratio - 1
            found.append(math.log(seconds[-1] / before) / ratio - max(0.0, surplus))
    return min(found, default=None)


def proportional_work(size: int) -> float:
    """Return the CPU seconds of making, finding and sorting a number of objects.

    Its time grows faster than the number, because more objects fit less well into the caches of the processor.
    """
    began = time.process_time()
    known = {f"h-{i}": {"value": (i, f"v-{i}")} for i in range(_OBJECTS * size)}
    sorted(name for name in known if known[name]["value"])
    return time.process_time() - began


class HostileWorld:
    """A cluster with room, and the steps that a pod of one field goes through."""

    def __init__(self, nodes: int, seed: int = 0) -> None:
        self.world = BenchWorld(nodes, 2 * nodes, seed=seed, per_node=2)
        self._tags = count()
        self._numbers = count()
        self.timer: Callable[[], float] = time.process_time

    async def measure(self, name: str, size: int) -> dict[str, float]:
        """Return the seconds of each step for a pod with this many entries of a field."""
        fill, found = FIELDS[name], {}
        found["attempt"] = await self._attempt(self._bytes(fill, size))
        refused = self._bytes(fill, size, cpu=10_000_000)
        found["refused"] = await self._attempt(refused, keep=True)
        found["event"] = self._event(refused, self._bytes(fill, size))
        found["preempts"] = await self._attempt(self._bytes(fill, size, cpu=31_950, priority=1000))
        found["neighbour"] = await self._neighbour(self._bytes(fill, size))
        return found

    def fits(self, name: str, size: int) -> bool:
        """Return whether the API server would store a pod with this many entries."""
        return len(self._bytes(FIELDS[name], size)) <= MAX_BYTES

    def _bytes(self, fill: Fill, size: int, cpu: int = 10, **spec: Any) -> bytes:
        """Return a pod as the watch delivers it. The first node has room for it."""
        tag = f"h{next(self._tags)}"
        pod: Json = raw_pod(tag, cpu=cpu, memory=10, labels={"app": tag}, namespace=TENANT, **spec)
        pod["spec"]["schedulerName"] = self.world.profile.name
        fill(pod, tag, size)
        return msgspec.json.encode(pod)

    async def _attempt(self, data: bytes, *, keep: bool = False) -> float:
        engine, world = self.world.engine, self.world
        began = self.timer()
        pod = decoding.decode(PODS, data)
        self._deliver(Change(PODS, None, pod))
        info = engine.queue.pop()
        if info is not None:
            result = await engine.cycle.run(info, world.profile)
            if isinstance(result, Failure):
                engine.failures.handle(info, world.profile.name, result)
        took = self.timer() - began
        if info is not None:
            engine.queue.done(info.uid)
            engine.cache.forget(info.uid)
        if not keep:
            self._deliver(Change(PODS, pod, None))
        await asyncio.sleep(0)  # the status of the pod is written
        return took

    def _event(self, waiting: bytes, other: bytes) -> float:
        """Change a node in all ways that hints look at, and delete a running pod of the tenant. The hints of all
        plugins are called, as if each of them had refused the waiting pod."""
        pod: Pod = decoding.decode(PODS, waiting)  # type: ignore[assignment]
        old: Node = self.world.engine.services.nodes()[0].node
        new = _changed(old, next(self._numbers))
        gone = self._running(f"gone-{next(self._numbers)}", decoding.decode(PODS, other), old.name)  # type: ignore[arg-type]
        self._deliver(Change(PODS, None, gone))
        began = self.timer()
        self._deliver(Change(NODES, old, new))
        self._deliver(Change(PODS, gone, None))
        for registrations in self.world.profile.registrations.values():
            for registration in registrations:
                _ask(registration, pod, {NODE: (old, new), POD: (gone, _relabelled(gone))})
        took = self.timer() - began
        self._deliver(Change(PODS, pod, None), Change(NODES, new, old))
        while (info := self.world.engine.queue.pop()) is not None:
            self.world.engine.queue.done(info.uid)
        return took

    async def _neighbour(self, data: bytes) -> float:
        """Let the pod run, schedule a small pod of another tenant, and delete both."""
        name = self.world.engine.services.nodes()[0].name
        small = raw_pod("small", cpu=5, memory=5, labels={"app": "small"}, namespace=NEIGHBOUR)
        small["spec"]["schedulerName"] = self.world.profile.name
        small["metadata"]["uid"] = small["metadata"]["name"] = f"small-{next(self._numbers)}"
        began = self.timer()
        pod = self._running(f"hosted-{next(self._numbers)}", decoding.decode(PODS, data), name)  # type: ignore[arg-type]
        self._deliver(Change(PODS, None, pod))
        await self._attempt(msgspec.json.encode(small))
        self._deliver(Change(PODS, pod, None))
        return self.timer() - began

    def _running(self, name: str, pod: Pod, node: str) -> Pod:
        meta = msgspec.structs.replace(pod.metadata, name=name, uid=name)
        return msgspec.structs.replace(
            pod,
            metadata=meta,
            spec=msgspec.structs.replace(pod.spec, node_name=node, scheduling_gates=()),
            status=msgspec.structs.replace(pod.status, phase="Running", start_time="2026-01-01T00:00:00Z"),
        )

    def _deliver(self, *changes: Change) -> None:
        for change in changes:
            self.world.engine.inbox.post(change)
        self.world.engine.drain()


def _ask(registration: Registration, pod: Pod, objects: Mapping[str, tuple[Any, Any]]) -> None:
    """Call a hint for an object that comes, changes and goes."""
    hint, found = registration.hint, objects.get(registration.event.resource)
    if hint is not None and found is not None:
        old, new = found
        for before, after in ((None, new), (old, new), (old, None)):
            hint(pod, before, after)


def _relabelled(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels={"other": "label"}))


def _changed(node: Node, number: int) -> Node:
    """Return the node with other labels, taints and allocatable amounts."""
    meta = msgspec.structs.replace(node.metadata, labels={**node.labels, "changed": f"v{number}"})
    amounts = {**node.status.allocatable, "pods": f"{200 + number}"}
    status = msgspec.structs.replace(node.status, allocatable=amounts)
    spec = msgspec.structs.replace(node.spec, taints=())
    return msgspec.structs.replace(node, metadata=meta, spec=spec, status=status)


class HostileBench:
    """Grows fields one after the other."""

    def __init__(self, nodes: int, largest: int = LARGEST, limit: float = 20.0, seed: int = 0) -> None:
        self.world = HostileWorld(nodes, seed)
        self._largest = largest
        self._limit = limit
        """Seconds that one size of one field may take; larger sizes are left out."""

    async def grow(self, name: str, progress: Callable[[str], None] = lambda text: None) -> list[Growth]:
        """Return the growth of each step of a field."""
        times: dict[int, dict[str, float]] = {}
        yardstick: dict[int, float] = {}
        sizes = self.sizes_of(name)
        with _undisturbed():
            await self.world.measure(name, 10)  # first-use tables
            for size in sizes:
                progress(f"{name} {size}")
                times[size] = await self._least(name, size)
                yardstick[size] = min(proportional_work(size) for _ in range(2 * REPEATS))
                if _next_seconds(times, sizes) > self._limit:
                    break
            for _ in range(SECOND_LOOKS):
                if not any(growth.is_too_steep for growth in _growths(name, times, yardstick, len(sizes))):
                    break
                progress(f"{name} again")
                for size in list(times)[-_FITTED:]:
                    times[size] = _lower(times[size], await self._least(name, size))
        return _growths(name, times, yardstick, len(sizes))

    def sizes_of(self, name: str) -> list[int]:
        """Return the sizes to measure, up to the largest pod that the API server would store."""
        largest, too_large = SMALLEST, self._largest + 1
        while too_large - largest > max(1, largest // 100):
            middle = (largest + too_large) // 2
            if self.world.fits(name, middle):
                largest = middle
            else:
                too_large = middle
        largest = self._largest if too_large > self._largest else largest
        steps = (largest // 64, largest // 4, largest // 2, largest)
        return [SMALLEST, *(size for size in steps if size > SMALLEST)]

    async def _least(self, name: str, size: int) -> dict[str, float]:
        """Return the least of several times, because other work only adds to them."""
        found = await self.world.measure(name, size)
        for _ in range(REPEATS - 1):
            if sum(found.values()) > _LONG_SECONDS:
                break
            found = _lower(found, await self.world.measure(name, size))
        return found


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep the garbage collector, which runs after a number of new objects, from hitting one size and not another, and
    log no warnings about pods that are as odd as intended."""
    gc.collect()
    gc.disable()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()


def _lower(some: Mapping[str, float], others: Mapping[str, float]) -> dict[str, float]:
    return {step: min(seconds, others[step]) for step, seconds in some.items()}


def _growths(
    name: str, times: Mapping[int, Mapping[str, float]], yardstick: Mapping[int, float], planned: int
) -> list[Growth]:
    growths = []
    for step in STEPS:
        seconds = tuple(found[step] for found in times.values())
        exponent = exponent_of(tuple(times), seconds, tuple(yardstick.values()))
        growths.append(Growth(name, step, tuple(times), seconds, exponent, stopped=len(times) < planned))
    return growths


def _next_seconds(times: Mapping[int, Mapping[str, float]], sizes: Sequence[int]) -> float:
    """Return the seconds that the next size will take if the growth continues."""
    if not 2 <= len(times) < len(sizes):
        return 0.0
    *_, before, last = (sum(found.values()) for found in times.values())
    small, size, larger = sizes[len(times) - 2], sizes[len(times) - 1], sizes[len(times)]
    power = math.log(last / before) / math.log(size / small)
    return float(last * (larger / size) ** max(power, 1.0))
