"""Memory that tenants drive: rounds of pods with names that no pod had before, all deleted at the end of their round.

    python -m perf.memory                    # 5,000 nodes, every kind of names
    python -m perf.memory resources labels --nodes 1000 --rounds 6

Each kind runs in its own process. It is measured after plain pods, after each round, and after the caches have
forgotten what no pod needs any more, as they do in a scheduler after some minutes. Two figures are printed: the memory
that the process holds, and the blocks of memory that objects use. Python keeps pages on which a few objects remain, so
the process holds what its largest round needed. The exit code is 1 if in the end objects use 10 % more blocks than
before the rounds, or if the process holds 10 % more after the last round than after the middle one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from moorage.api import decoding, recent
from moorage.api.node import HOSTNAME
from moorage.api.resources import PODS
from moorage.app.gc_tuning import return_free_memory
from moorage.bench.measuring import rss_mb
from moorage.bench.world import BenchWorld, raw_pod
from moorage.framework.ports import Change
from moorage.scheduler.failing import Failure

Json = dict[str, Any]
NAMES = 100
"""New names of a pod."""
PODS_PER_ROUND = 300
PLAIN_PODS = 600
"""Pods without new names that come and go before the first round."""
MAX_GROWTH = 1.1
MAX_RECORD_BYTES = 1 << 20
"""Decision records have their own limit, which takes thousands of pods to reach."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _names(tag: str, number: int = NAMES) -> Iterator[str]:
    return (f"{tag}-{i}" for i in range(number))


def resources(pod: Json, tag: str) -> None:
    pod["spec"]["containers"][0]["resources"]["requests"] |= {f"example.com/{name}": "1" for name in _names(tag)}


def labels(pod: Json, tag: str) -> None:
    pod["metadata"]["labels"] |= {name: f"v-{name}" for name in _names(tag)}


def topologies(pod: Json, tag: str) -> None:
    pod["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": name, "whenUnsatisfiable": "ScheduleAnyway", **_selects(name)}
        for name in _names(tag)
    ]


def selectors(pod: Json, tag: str) -> None:
    terms = [{"topologyKey": HOSTNAME, **_selects(name)} for name in _names(tag)]
    pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: terms}}


def node_affinity(pod: Json, tag: str) -> None:
    preferred = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": [name]}]}}
        for name in _names(tag)
    ]
    pod["spec"]["affinity"] = {"nodeAffinity": {PREFERRED: preferred}}


def images(pod: Json, tag: str) -> None:
    pod["spec"]["containers"] += [{"name": name, "image": f"{name}:1"} for name in _names(tag, 30)]


def host_ports(pod: Json, tag: str) -> None:
    number = sum(map(ord, tag)) * 7919
    pod["spec"]["containers"][0]["ports"] = [
        {"containerPort": 80, "hostPort": 1 + (number + i) % 60_000} for i in range(NAMES)
    ]


def namespaces(pod: Json, tag: str) -> None:
    pod["metadata"]["namespace"] = tag


def tolerations(pod: Json, tag: str) -> None:
    pod["spec"]["tolerations"] = [{"key": name, "operator": "Exists"} for name in _names(tag)]


def _selects(name: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": name}}}


KINDS: dict[str, Callable[[Json, str], None]] = {
    "resources": resources,
    "labels": labels,
    "topologies": topologies,
    "selectors": selectors,
    "node-affinity": node_affinity,
    "images": images,
    "host-ports": host_ports,
    "namespaces": namespaces,
    "tolerations": tolerations,
}


class Rounds:
    """A cluster in which pods of one kind come and go."""

    def __init__(self, kind: str, nodes: int) -> None:
        self._kind = kind
        self.world = BenchWorld(nodes, nodes)
        self.world.engine.records.max_bytes = MAX_RECORD_BYTES
        self._number = 0

    async def run(self, pods: int = PODS_PER_ROUND, *, plain: bool = False) -> None:
        """Schedule pods with new names, or without, and delete them."""
        engine, present = self.world.engine, []
        for _ in range(pods):
            self._number += 1
            tag = f"t{self._number}"
            raw = raw_pod(tag, cpu=10, memory=10, labels={"app": "tenant"}, namespace="tenant")
            raw["spec"]["schedulerName"] = self.world.profile.name
            if not plain:
                KINDS[self._kind](raw, tag)
            present.append(await self._schedule(decoding.convert(PODS, raw)))
        for pod in present:
            engine.inbox.post(Change(PODS, pod, None))
        engine.drain()
        engine.services.nodes()
        engine.cache.table.settle()

    async def _schedule(self, pod: Any) -> Any:
        engine = self.world.engine
        engine.inbox.post(Change(PODS, None, pod))
        engine.drain()
        info = engine.queue.pop()
        if info is None:
            return pod
        result = await engine.cycle.run(info, self.world.profile)
        if isinstance(result, Failure):
            engine.failures.handle(info, self.world.profile.name, result)
            await asyncio.sleep(0)
            return pod
        engine.queue.done(info.uid)
        cached = engine.cache.get(info.uid)
        assert cached is not None
        bound = cached.pod
        engine.inbox.post(Change(PODS, pod, bound))
        engine.drain()
        return bound

    def entries(self) -> Counter[str]:
        """Return what the state holds: the resources of the node table and of its rows, and objects by class."""
        found = held()
        table = self.world.engine.cache.table
        found["resources"] = len(table.amounts)
        found["sums"] = sum(len(table.load_on(row).requested) for _, row in table.known_rows())
        return found


def held() -> Counter[str]:
    """Return how many objects of the state are in the process, by class."""
    gc.collect()
    kept = ("LabelSet", "SelectorCounter", "RowHeldTerm", "PodEntry", "QueuedPod", "RejectedGroup", "LabelColumn")
    found = Counter(dict.fromkeys(kept, 0))
    found.update(type(each).__name__ for each in gc.get_objects() if type(each).__name__ in kept)
    return found


def measure(kind: str, nodes: int, rounds: int) -> bool:
    """Print the memory before, after each round and in the end, and return whether it stays."""
    run = Rounds(kind, nodes)
    asyncio.run(run.run(PLAIN_PODS, plain=True))
    before, blocks = _settled_mb(), sys.getallocatedblocks()
    sizes = []
    for _ in range(rounds):
        asyncio.run(run.run())
        sizes.append(_settled_mb())
    recent.forget_unused()
    recent.forget_unused()
    after = _settled_mb()
    remaining = sys.getallocatedblocks() / blocks
    listed = " ".join(f"{size:.0f}" for size in sizes)
    sys.stdout.write(
        f"{kind:15} {before:.0f} MB, rounds {listed}, then {after:.0f} MB; blocks {100 * (remaining - 1):+.1f} %\n"
    )
    sys.stdout.flush()
    return remaining <= MAX_GROWTH and sizes[-1] / sizes[rounds // 2] <= MAX_GROWTH


def _settled_mb() -> float:
    gc.collect()
    return_free_memory()
    return rss_mb()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.memory", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"kinds of names: {', '.join(KINDS)} (default: all)")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind {unknown[0]!r}; known kinds are {', '.join(KINDS)}")
    if len(options.kinds) == 1:
        return 0 if measure(options.kinds[0], options.nodes, options.rounds) else 1
    arguments = ["--nodes", str(options.nodes), "--rounds", str(options.rounds)]
    runs = [[sys.executable, "-m", "perf.memory", kind, *arguments] for kind in options.kinds or KINDS]
    return max([subprocess.run(run, check=False).returncode for run in runs])


if __name__ == "__main__":
    sys.exit(main())
