"""ReplicaSets and ReplicationControllers: as many pods as wanted, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from moorage.api.errors import MoorageError
from moorage.api.resources import Resource, Unstructured
from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import OWNER
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import (
    is_active,
    is_ready,
    is_terminating,
    next_available,
    node_name,
    phase,
    restarts,
    seconds_to_available,
    with_condition,
)
from moorage.embedded.controllers.ownership import claim, index_orphans, pod_from, possible_owners
from moorage.embedded.controllers.writes import slow_start

Raw = dict[str, Any]

BURST = 500
"""Pods made or deleted in one look; more follow in the next."""
PODS_PER_SECOND = 5000
"""Large sets are looked at less often: so many pods are counted in a second, at most."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets(Controller):
    """The controller of ReplicaSets."""

    name = "replicaset-controller"
    resource: ClassVar[Resource] = kinds.REPLICA_SETS

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.sets = self.watch(self.resource, own_key)
        self.pods = index_orphans(self.watch(kinds.PODS, self._keys_of, _concerns))

    def _keys_of(self, pod: Unstructured) -> Iterable[str]:
        return possible_owners(self.sets, pod)

    async def reconcile(self, key: str) -> float | None:
        owner = self.sets.get(key)
        if owner is None:
            return None
        pods = await claim(self.writer, self.resource, owner, self.pods)
        failure: MoorageError | None = None
        more = False
        if not is_terminating(owner):
            try:
                more = await self._scale(owner, [pod for pod in pods if is_active(pod)])
            except MoorageError as error:
                failure = error
        await self._report(owner, failure)
        if failure is not None:
            raise failure
        if more:
            return 0.0
        seconds = (owner.raw.get("spec") or {}).get("minReadySeconds") or 0
        return next_available(self.pods.owned_by(owner), seconds, self.clock.wall())

    def rest(self, key: str) -> float:
        owner = self.sets.get(key)
        return self.pods.count(OWNER, owner.uid) / PODS_PER_SECOND if owner is not None else 0.0

    async def _scale(self, owner: Unstructured, active: list[Unstructured]) -> bool:
        """Says whether there is more to do than one look may."""
        missing = wanted_replicas(owner) - len(active)
        if missing > 0:
            await slow_start([owner] * min(missing, BURST), self._create)
        elif missing < 0:
            surplus = rank_for_deletion(active, self._neighbours(owner), self.clock.wall())
            await slow_start(surplus[: min(-missing, BURST)], partial(self._delete, owner))
        return abs(missing) > BURST

    async def _delete(self, owner: Unstructured, pod: Unstructured) -> None:
        await self.writer.delete(kinds.PODS, pod)
        self.event(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _create(self, owner: Unstructured) -> None:
        template = (owner.raw.get("spec") or {}).get("template") or {}
        try:
            pod = await self.writer.create(kinds.PODS, pod_from(template, self.resource, owner))
        except MoorageError as error:
            self.warn(owner, "FailedCreate", f"Error creating: {error}")
            raise
        self.event(owner, "SuccessfulCreate", f"Created pod: {pod.name}")

    def _neighbours(self, owner: Unstructured) -> Callable[[Unstructured], int]:
        """How many active pods of the same deployment are on a pod's node."""
        parents = [o.uid for o in owner.metadata.owner_references if o.controller]
        related = self.sets.find("owner", parents[0]) if parents else [owner]
        counted = Counter(node_name(p) for r in related for p in self.pods.owned_by(r) if is_active(p))
        return lambda pod: counted[node_name(pod)]

    async def _report(self, owner: Unstructured, failure: MoorageError | None) -> None:
        current = self.sets.get(owner.key)
        if current is None or current.uid != owner.uid:
            return
        now = self.clock.wall()
        status = status_of(current, self.pods.owned_by(current), failure, now)
        await self.writer.update_status(self.resource, current, status)


class ReplicationControllers(ReplicaSets):
    """The controller of their predecessor, whose selector defaults to the labels of its template."""

    name = "replication-controller"
    resource: ClassVar[Resource] = kinds.REPLICATION_CONTROLLERS


def wanted_replicas(owner: Unstructured) -> int:
    replicas = (owner.raw.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def status_of(owner: Unstructured, pods: Iterable[Unstructured], failure: object, wall: float) -> Raw:
    """The status that these pods give."""
    spec = owner.raw.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    counts = Tally.of(pods, labels, spec.get("minReadySeconds") or 0, wall)
    before = owner.raw.get("status") or {}
    conditions = [c for c in before.get("conditions") or () if c.get("type") != "ReplicaFailure"]
    if failure is not None:
        why = "FailedCreate" if counts.replicas < wanted_replicas(owner) else "FailedDelete"
        new = {"type": "ReplicaFailure", "status": "True", "reason": why, "message": str(failure)}
        conditions = with_condition(before.get("conditions"), new, format_time(wall))
    status: Raw = {"replicas": counts.replicas}
    for field, value in (
        ("fullyLabeledReplicas", counts.labelled),
        ("readyReplicas", counts.ready),
        ("availableReplicas", counts.available),
        ("terminatingReplicas", counts.terminating),
        ("observedGeneration", owner.metadata.generation),
        ("conditions", conditions),
    ):
        if value:
            status[field] = value
    return status


@dataclass(slots=True)
class Tally:
    """Replicas, counted."""

    replicas: int = 0
    labelled: int = 0
    ready: int = 0
    available: int = 0
    terminating: int = 0

    @classmethod
    def of(cls, pods: Iterable[Unstructured], labels: Raw, min_ready: float, wall: float) -> Tally:
        tally = cls()
        wanted = labels.items()
        for pod in pods:
            if not is_active(pod):
                tally.terminating += is_terminating(pod) and phase(pod) not in ("Succeeded", "Failed")
                continue
            tally.replicas += 1
            tally.labelled += wanted <= pod.labels.items()
            waiting = seconds_to_available(pod, min_ready, wall)
            tally.ready += waiting is not None
            tally.available += waiting == 0.0
        return tally


def rank_for_deletion(
    pods: list[Unstructured], neighbours: Callable[[Unstructured], int], wall: float
) -> list[Unstructured]:
    """The pods in the order in which they go.

    Unassigned before assigned, pending before running, unready before ready, low deletion cost before high,
    from crowded nodes first, ready for a shorter time, restarted more often, and newer first. Times are
    compared by their order of magnitude, as upstream does, so that a few seconds do not decide.
    """

    def rank(pod: Unstructured) -> tuple[Any, ...]:
        return (
            bool(node_name(pod)),
            _PHASES.get(phase(pod), 2),
            is_ready(pod),
            _deletion_cost(pod),
            -neighbours(pod),
            _magnitude(_ready_since(pod), wall),
            -restarts(pod),
            _magnitude(pod.metadata.creation_timestamp, wall),
            pod.uid,
        )

    return sorted(pods, key=rank)


def _deletion_cost(pod: Unstructured) -> int:
    try:
        return int(pod.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _ready_since(pod: Unstructured) -> str | None:
    for found in (pod.raw.get("status") or {}).get("conditions") or ():
        if found.get("type") == "Ready" and found.get("status") == "True":
            return str(found.get("lastTransitionTime") or "")
    return None


def _magnitude(since: str | None, wall: float) -> int:
    """The number of binary digits of an age in seconds."""
    then = parse_time(since)
    return 0 if then is None else max(0, int(wall - then)).bit_length()


def _concerns(old: Unstructured, new: Unstructured) -> bool:
    """Whether a pod changed in something that is counted or ranked here."""
    return (
        is_ready(old) != is_ready(new)
        or phase(old) != phase(new)
        or old.raw["metadata"].get("labels") != new.raw["metadata"].get("labels")
        or old.metadata.owner_references != new.metadata.owner_references
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
    )
