"""NUMA zones for the nodes of `moorage up`: publishes a NodeResourceTopology for each, as a daemon on nodes
would (nfd-topology-updater, say), and keeps it current as pods run.

The resources of a node are split evenly. A container that has cpus, memory or devices to itself gets them
from the first zone that has enough; where none has, from several. Pods are not refused here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from moorage.api import decoding, resources
from moorage.api.errors import AlreadyExists, MoorageError, NotFound
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, PODS, node_allocatable
from moorage.api.resources import Unstructured
from moorage.contrib.topology_match.placement import ATTRIBUTE, fingerprint, pinned
from moorage.contrib.topology_match.topology import CONTAINER, NODE_RESOURCE_TOPOLOGIES, POLICY, SCOPE, SINGLE_NUMA_NODE
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Caches
from moorage.embedded.controllers.kinds import node_name, phase
from moorage.framework.ports import ApiClient, Clock, PatchType
from moorage.telemetry import logs

NEAR, FAR = 10, 20
"""Distances of a zone from itself and from others."""
_PAUSE = 0.2
"""Seconds in which changes of a node are combined into one write."""
_AT_ONCE = 200
"""Objects to write between two turns of the loop."""
Amounts = dict[str, int]
_log = logs.get(__name__)


class TopologyPublisher:
    def __init__(self, caches: Caches, client: ApiClient, clock: Clock, zones: int) -> None:
        self._nodes, self._pods = caches.of(kinds.NODES), caches.of(kinds.PODS)
        self._pods.add_index("node", lambda pod: (node_name(pod),))
        self._client, self._clock, self._zones = client, clock, zones
        self._given: dict[str, dict[str, list[Amounts]]] = {}
        """Node → UID of a running pod → what it has, by zone."""
        self._published: dict[str, dict[str, Any]] = {}
        self._changed: set[str] = set()
        self._arrived = asyncio.Event()
        self._nodes.handlers.append(lambda old, new: self._note((new or old).name))  # type: ignore[union-attr]
        self._pods.handlers.append(lambda old, new: self._note(node_name(new or old)))  # type: ignore[arg-type]

    def _note(self, node: str) -> None:
        if node:
            self._changed.add(node)
            self._arrived.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self._arrived.wait()
            await self._clock.sleep(_PAUSE)
            self._arrived.clear()
            changed, self._changed = self._changed, set()
            for number, name in enumerate(sorted(changed), 1):
                try:
                    await self._publish(name)
                except MoorageError as error:
                    _log.info(3, "NodeResourceTopology was not published", node=name, err=error)
                    self._clock.call_later(1.0, self._note, name)
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _publish(self, name: str) -> None:
        found = self._nodes.get(name)
        if found is None:
            self._given.pop(name, None)
            if self._published.pop(name, None) is not None:
                with suppress(NotFound):
                    await self._client.delete(NODE_RESOURCE_TOPOLOGIES, name)
            return
        content = self._content(found)
        if content == self._published.get(name):
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": found.uid}
        meta = {"name": name, "ownerReferences": [owner]}
        try:
            await self._client.create(NODE_RESOURCE_TOPOLOGIES, {"metadata": meta, **content})
        except AlreadyExists:
            await self._client.patch(NODE_RESOURCE_TOPOLOGIES, name, content, patch_type=PatchType.MERGE)
        self._published[name] = content

    def _content(self, found: Unstructured) -> dict[str, Any]:
        node = decoding.convert(resources.NODES, found.raw)
        assert isinstance(node, Node)
        shares = split(node_allocatable(node), self._zones)
        started = [pod for pod in self._pods.find("node", node.name) if phase(pod) != "Pending"]
        free = self._give([pod for pod in started if phase(pod) == "Running"], node.name, shares)
        settings = {POLICY: SINGLE_NUMA_NODE, SCOPE: CONTAINER, ATTRIBUTE: fingerprint(started)}
        return {
            "attributes": [{"name": name, "value": value} for name, value in settings.items()],
            "zones": [_zone(number, shares, free) for number in range(self._zones)],
        }

    def _give(self, running: list[Unstructured], name: str, shares: list[Amounts]) -> list[Amounts]:
        """Return what remains in each zone. Pods keep what they have."""
        given = self._given.setdefault(name, {})
        for uid in given.keys() - {pod.uid for pod in running}:
            del given[uid]
        free = [dict(share) for share in shares]
        for pod in sorted(running, key=lambda pod: pod.uid not in given):
            if pod.uid not in given:
                given[pod.uid] = [*allot(pod, free)]
            for zone, amounts in zip(free, given[pod.uid], strict=True):
                for resource, amount in amounts.items():
                    zone[resource] = max(zone.get(resource, 0) - amount, 0)
        return free


def split(amounts: Amounts, zones: int) -> list[Amounts]:
    """Split amounts into even shares, with whole CPUs; the remainder goes to the first zones."""
    found: list[Amounts] = [{} for _ in range(zones)]
    for name, amount in sorted(amounts.items()):
        if name in (PODS, EPHEMERAL_STORAGE):
            continue
        unit = 1000 if name == CPU else 1
        for number, zone in enumerate(found):
            share, rest = divmod(amount // unit, zones)
            zone[name] = (share + (number < rest)) * unit + (amount % unit if number == 0 else 0)
    return found


def allot(pod: Unstructured, free: list[Amounts]) -> Iterator[Amounts]:
    """Yield what each zone gives to a pod, up to what it has."""
    typed = decoding.convert(resources.PODS, pod.raw)
    assert isinstance(typed, Pod)
    given: list[Amounts] = [{} for _ in free]
    for _, wanted in pinned(typed, {*free[0]}):
        missing = dict(wanted)
        remaining = [
            {name: zone.get(name, 0) - mine.get(name, 0) for name in wanted}
            for zone, mine in zip(free, given, strict=True)
        ]
        fitting = [i for i, zone in enumerate(remaining) if all(zone[n] >= a for n, a in wanted.items())]
        for number in fitting[:1] or range(len(free)):
            for name in missing:
                taken = min(missing[name], remaining[number][name])
                given[number][name] = given[number].get(name, 0) + taken
                missing[name] -= taken
    yield from given


def _zone(number: int, shares: list[Amounts], free: list[Amounts]) -> dict[str, Any]:
    distances = (NEAR if other == number else FAR for other in range(len(shares)))
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": [{"name": f"node-{other}", "value": value} for other, value in enumerate(distances)],
        "resources": [
            {
                "name": name, "capacity": _text(name, amount), "allocatable": _text(name, amount),
                "available": _text(name, free[number][name]),
            }
            for name, amount in shares[number].items()
        ],
    }  # fmt: skip


def _text(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU and amount % 1000 else str(amount // (1000 if name == CPU else 1))
