"""DaemonSets: one pod on every node that it may run on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.api import decoding, resources
from moorage.api.node_selectors import required_node_affinity
from moorage.api.pod import Pod
from moorage.api.resources import Unstructured
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, Taint, find_untolerated
from moorage.embedded.controllers import kinds, ownership
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import (
    is_finished,
    is_ready,
    is_terminating,
    next_available,
    node_name,
    phase,
    seconds_to_available,
)
from moorage.embedded.controllers.ownership import (
    RevisionHistory,
    claim,
    index_orphans,
    pod_from,
    possible_owners,
    resolve,
)
from moorage.embedded.controllers.replica_sets import BURST

Raw = dict[str, Any]

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_FAILED_PAUSES = (1.0, 900.0)
"""The first and the longest pause before a pod that failed on a node is made again, in seconds."""


def may_run(template: Pod, node: Unstructured) -> tuple[bool, bool]:
    """Whether a pod of the template should be made on the node, and whether one there may stay."""
    if not required_node_affinity(template).matches(node.labels, node.name):
        return False, False
    if template.spec.node_name and template.spec.node_name != node.name:
        return False, False
    taints = msgspec.convert((node.raw.get("spec") or {}).get("taints") or [], list[Taint])
    tolerations = template.spec.tolerations
    stays = find_untolerated(taints, tolerations, (NO_EXECUTE,)) is None
    return stays and find_untolerated(taints, tolerations, (NO_SCHEDULE,)) is None, stays


def target_node(pod: Unstructured) -> str:
    """The node that the pod is on, or is meant for."""
    if node_name(pod):
        return node_name(pod)
    affinity = ((pod.raw.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for wanted in term.get("matchFields") or ():
            if wanted.get("key") == "metadata.name" and len(wanted.get("values") or ()) == 1:
                return str(wanted["values"][0])
    return ""


def pod_for(owner: Unstructured, node: str, digest: str) -> Raw:
    """The pod for one node: bound to it by affinity, tolerant of the troubles of nodes."""
    labels = {HASH_LABEL: digest, GENERATION_LABEL: str(owner.metadata.generation or 1)}
    raw = pod_from(owner.raw["spec"]["template"], kinds.DAEMON_SETS, owner, labels=labels)
    return {**raw, "spec": _daemon_spec(raw["spec"], node)}


def _daemon_spec(spec: Raw, node: str) -> Raw:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or [{}]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]
    }
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}, "tolerations": with_tolerations(spec)}


def with_tolerations(spec: Raw) -> list[Raw]:
    wanted = list(_TOLERATED)
    if spec.get("hostNetwork"):
        wanted.append(("node.kubernetes.io/network-unavailable", NO_SCHEDULE))
    given = list(spec.get("tolerations") or ())
    known = {(t.get("key"), t.get("effect")) for t in given}
    more = [{"key": k, "operator": "Exists", "effect": e} for k, e in wanted if (k, e) not in known]
    return [*given, *more]


def template_pod(owner: Unstructured) -> Pod:
    """A pod of the set for judging nodes, which are not named in it."""
    template = owner.raw["spec"].get("template") or {}
    spec = {**(template.get("spec") or {})}
    spec["tolerations"] = with_tolerations(spec)
    typed = decoding.convert(resources.PODS, {"metadata": {"name": owner.name}, "spec": spec})
    assert isinstance(typed, Pod)
    return typed


def place_facts(node: Unstructured) -> tuple[Any, ...]:
    """What decides whether pods may run there; taints differ without the time of their adding."""
    taints = (node.raw.get("spec") or {}).get("taints") or ()
    facts = tuple((t.get("key"), t.get("value"), t.get("effect")) for t in taints)
    return tuple(sorted(node.labels.items())), facts


def status_of(owner: Unstructured, counts: dict[str, int]) -> Raw:
    status: Raw = {
        "currentNumberScheduled": counts["current"],
        "numberMisscheduled": counts["misscheduled"],
        "desiredNumberScheduled": counts["desired"],
        "numberReady": counts["ready"],
        "observedGeneration": owner.metadata.generation,
    }
    for field, value in (
        ("updatedNumberScheduled", counts["updated"]),
        ("numberAvailable", counts["available"]),
        ("numberUnavailable", counts["desired"] - counts["available"]),
    ):
        if value:
            status[field] = value
    return status


@dataclass(slots=True)
class DaemonPlace:
    """One node, as the set sees it."""

    node: str
    wanted: bool
    """A pod should be made here."""
    tolerated: bool
    """A pod that is here already may stay."""
    pods: list[Unstructured]


class DaemonSets(Controller):
    """The controller of DaemonSets."""

    name = "daemonset-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.sets = self.watch(kinds.DAEMON_SETS, own_key)
        self.pods = index_orphans(self.watch(kinds.PODS, self._keys_of))
        self.nodes = self.caches.of(kinds.NODES)
        self.nodes.handlers.append(self._node_changed)
        self.history = RevisionHistory(self.writer, self.caches.of(kinds.CONTROLLER_REVISIONS), kinds.DAEMON_SETS)
        self._failed: dict[tuple[str, str], tuple[float, float]] = {}
        """(UID of the set, node) → the last pause and its end, where pods have failed."""

    def _keys_of(self, pod: Unstructured) -> Iterable[str]:
        return possible_owners(self.sets, pod)

    def _node_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if old is not None and new is not None and place_facts(old) == place_facts(new):
            return
        for owner in self.sets:
            self.queue.add(owner.key)

    async def reconcile(self, key: str) -> float | None:
        owner = self.sets.get(key)
        if owner is None or is_terminating(owner):
            return None
        await claim(self.writer, kinds.DAEMON_SETS, owner, self.pods)
        revision = await self.history.present(owner)
        digest = ownership.hash_of(revision)
        again = await self._place(owner, digest)
        seconds = owner.raw["spec"].get("minReadySeconds") or 0
        available = next_available(self.pods.owned_by(owner), seconds, self.clock.wall())
        await self._roll(owner, digest)
        await self._report(key, digest)
        await self.history.drop_old(owner, {revision.name, *self._revisions_in_use(owner)})
        return min((t for t in (again, available) if t is not None), default=None)

    def places(self, owner: Unstructured) -> list[DaemonPlace]:
        template = template_pod(owner)
        by_node: dict[str, list[Unstructured]] = {}
        for pod in self.pods.owned_by(owner):
            by_node.setdefault(target_node(pod), []).append(pod)
        found = []
        for node in self.nodes:
            wanted, tolerated = may_run(template, node)
            found.append(DaemonPlace(node.name, wanted, tolerated, by_node.pop(node.name, [])))
        # Pods for nodes that are gone.
        found += [DaemonPlace(name, False, False, pods) for name, pods in by_node.items()]
        return found

    async def _place(self, owner: Unstructured, digest: str) -> float | None:
        """Makes missing pods, removes surplus ones; says when to look again for ones that failed."""
        again: float | None = None
        done = 0
        for place in self.places(owner):
            if done >= BURST:
                return 0.0
            living = [pod for pod in place.pods if not is_terminating(pod)]
            failed = [pod for pod in living if is_finished(pod)]
            if failed:
                wait = self._pause(owner, place.node)
                if wait > 0:
                    again = min(again or wait, wait)
                    continue
                for pod in failed:
                    await self._remove(owner, pod, failed=True)
                    done += 1
                continue
            if place.wanted and not place.pods:
                await self._create(owner, place.node, digest)
                done += 1
            elif not place.tolerated:
                done += len(living)
                for pod in living:
                    await self._remove(owner, pod)
            elif len(living) > 1 and not self._surge(owner):
                for pod in sorted(living, key=lambda p: (not is_ready(p), p.name))[1:]:
                    await self._remove(owner, pod)
        return again

    def _pause(self, owner: Unstructured, node: str) -> float:
        """Seconds that a failed pod still stays; after that the next failure stays twice as long."""
        key, now = (owner.uid, node), self.clock.now()
        pause, ends = self._failed.get(key, (0.0, now))
        if now < ends:
            return ends - now
        if now - ends > _FAILED_PAUSES[1]:
            pause = 0.0
        pause = min(max(_FAILED_PAUSES[0], 2 * pause), _FAILED_PAUSES[1])
        self._failed[key] = (pause, now + pause)
        return 0.0

    async def _create(self, owner: Unstructured, node: str, digest: str) -> None:
        pod = await self.writer.create(kinds.PODS, pod_for(owner, node, digest))
        self.event(owner, "SuccessfulCreate", f"Created pod: {pod.name}")

    async def _remove(self, owner: Unstructured, pod: Unstructured, failed: bool = False) -> None:
        if failed and phase(pod) == "Failed":
            text = f"Found failed daemon pod {pod.key} on node {node_name(pod)}, will try to kill it"
            self.warn(owner, "FailedDaemonPod", text)
        await self.writer.delete(kinds.PODS, pod)
        self.event(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    def _surge(self, owner: Unstructured) -> int:
        rolling = ((owner.raw["spec"].get("updateStrategy") or {}).get("rollingUpdate")) or {}
        total = sum(place.wanted for place in self.places(owner)) if rolling.get("maxSurge") else 0
        return resolve(rolling.get("maxSurge"), total, up=True)

    async def _roll(self, owner: Unstructured, digest: str) -> None:
        """Replaces pods of older templates, a few at a time."""
        strategy = owner.raw["spec"].get("updateStrategy") or {}
        if (strategy.get("type") or "RollingUpdate") != "RollingUpdate":
            return
        places = [place for place in self.places(owner) if place.wanted]
        surge = self._surge(owner)
        if surge:
            await self._roll_by_surge(owner, digest, places, surge)
            return
        limit = resolve((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(places), up=True)
        allowed = max(1, limit) - sum(not self._serves(owner, place) for place in places)
        for place in places:
            for pod in place.pods:
                if pod.labels.get(HASH_LABEL) == digest or is_terminating(pod):
                    continue
                if not self._is_available(owner, pod):
                    await self._remove(owner, pod)  # it counts as unavailable already
                elif allowed > 0:
                    allowed -= 1
                    await self._remove(owner, pod)

    async def _roll_by_surge(self, owner: Unstructured, digest: str, places: list[DaemonPlace], surge: int) -> None:
        """A new pod beside the old one first; the old one goes when the new one is available."""
        allowed = surge - sum(len([p for p in place.pods if not is_terminating(p)]) > 1 for place in places)
        for place in places:
            living = [pod for pod in place.pods if not is_terminating(pod)]
            new = [pod for pod in living if pod.labels.get(HASH_LABEL) == digest]
            old = [pod for pod in living if pod.labels.get(HASH_LABEL) != digest]
            if old and any(self._is_available(owner, pod) for pod in new):
                for pod in old:
                    await self._remove(owner, pod)
            elif old and not new:
                if not any(self._is_available(owner, pod) for pod in old):
                    for pod in old:
                        await self._remove(owner, pod)
                elif allowed > 0:
                    allowed -= 1
                    await self._create(owner, place.node, digest)

    def _serves(self, owner: Unstructured, place: DaemonPlace) -> bool:
        return any(self._is_available(owner, pod) for pod in place.pods)

    def _is_available(self, owner: Unstructured, pod: Unstructured) -> bool:
        seconds = owner.raw["spec"].get("minReadySeconds") or 0
        return not is_terminating(pod) and seconds_to_available(pod, seconds, self.clock.wall()) == 0.0

    async def _report(self, key: str, digest: str) -> None:
        owner = self.sets.get(key)
        if owner is None:
            return
        counts = dict.fromkeys(("desired", "current", "misscheduled", "ready", "available", "updated"), 0)
        for place in self.places(owner):
            living = [pod for pod in place.pods if not is_terminating(pod)]
            if place.wanted:
                counts["desired"] += 1
                counts["current"] += bool(living)
                counts["ready"] += any(is_ready(pod) for pod in living)
                counts["available"] += any(self._is_available(owner, pod) for pod in living)
                counts["updated"] += any(pod.labels.get(HASH_LABEL) == digest for pod in living)
            else:
                counts["misscheduled"] += bool(living)
        await self.writer.update_status(kinds.DAEMON_SETS, owner, status_of(owner, counts))

    def _revisions_in_use(self, owner: Unstructured) -> set[str]:
        hashes = {pod.labels.get(HASH_LABEL, "") for pod in self.pods.owned_by(owner)}
        return {r.name for r in self.history.of(owner) if ownership.hash_of(r) in hashes}
