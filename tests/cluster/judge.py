"""Moorage's verdict about a pod on the state that an API server shows, without writing anything.

The engine lives on from pod to pod and is fed with the differences, as informers would feed it: so the node
table, its counters and its memory are those of a scheduler that has been running all the time.
"""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, Resource
from moorage.app.clock import SystemClock
from moorage.app.configuration import configure
from moorage.app.offline import NoApi, NoEvents
from moorage.framework.events import QueuedPod
from moorage.framework.ports import Change
from moorage.runtime.attempt import Attempt
from moorage.runtime.binding import run_unreserve
from moorage.runtime.reuse.signatures import Signer
from moorage.scheduler.assembly import assemble, needed_resources
from moorage.scheduler.cycle import PodPlacement
from moorage.scheduler.failing import Failure
from moorage.scheduler.generation import Ports
from tests.cluster.api import Api, Json


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a scheduler decided about one pod in its first attempt."""

    node: str = ""
    """Where it would place the pod; empty when nowhere."""
    scores: dict[str, int] = field(default_factory=dict)
    """Node → total, feasible nodes only; empty when fewer than two are feasible."""
    message: str = ""
    """Why it fits nowhere."""
    nominated: str = ""
    victims: tuple[str, ...] = ()


class Judge:
    """One engine, synced by hand."""

    def __init__(self, config: Json, emulated_version: str = "") -> None:
        made = configure(json.dumps(config), discover=False, emulated_version=emulated_version)
        ports = Ports(NoApi(), SystemClock(), random.Random(0), NoEvents())
        self.engine = assemble(made.config, made.profiles, made.registry, ports, behaviour=made.behaviour)
        self._wanted = needed_resources(made.plugins())
        self._known: dict[Resource, dict[str, Any]] = {}
        self._signers = {name: Signer(profile) for name, profile in self.engine.profiles.items()}

    def sync(self, api: Api) -> None:
        """Take over the differences between what is known and what the server has."""
        for resource in [NODES, *(kind for kind in self._wanted if kind not in (NODES, PODS)), PODS]:
            found = {obj.uid: obj for obj in (decoding.convert(resource, raw) for raw in api.list(resource))}
            known = self._known.setdefault(resource, {})
            for uid in known.keys() - found.keys():
                self.engine.inbox.post(Change(resource, known.pop(uid), None))
            for uid, obj in found.items():
                old = known.get(uid)
                if old is None or old.resource_version != obj.resource_version:
                    self.engine.inbox.post(Change(resource, old, obj))
                    known[uid] = obj
        self.engine.drain()

    def decide(self, raw: Json) -> Verdict:
        """One attempt; everything that it assumed is taken back."""
        pod = decoding.convert(PODS, raw)
        assert isinstance(pod, Pod)
        return asyncio.run(self._decide(pod))

    async def _decide(self, pod: Pod) -> Verdict:
        profile = self.engine.profiles[pod.scheduler_name]
        info = QueuedPod(pod, 0.0, signature=self._signers[profile.name].signature(pod))
        result = await self.engine.cycle.run(info, profile)
        await self.engine.tasks.stop()
        if isinstance(result, Failure):
            record = self.engine.records.last(pod.key)
            victims = tuple(sorted(record.victims)) if record is not None else ()
            return Verdict(message=result.message, nominated=result.nominated_node or "", victims=victims)
        self._take_back(result)
        return Verdict(node=result.node, scores=_scores(result.attempt))

    def _take_back(self, placed: PodPlacement) -> None:
        run_unreserve(placed.profile, placed.attempt.state, placed.pod, placed.node)
        self.engine.cache.forget(placed.pod.uid)


def _scores(attempt: Attempt) -> dict[str, int]:
    """Totals by node. An attempt from memory keeps none of its own; then the pod is evaluated afresh by the
    caller's next attempt, and only the choice is compared."""
    if attempt.board is None:
        return {}
    nodes = attempt.every.dense(attempt.ok)
    return dict(zip(nodes.names, attempt.board.totals[nodes.rows].tolist(), strict=True))
