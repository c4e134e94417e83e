"""StatefulSets: pods with lasting names and claims.

OrderedReady takes one step at a time: a pod is made only when all before it are available, one is removed
only when all others are well, and an update goes from the last pod to the first. Parallel makes and removes
all at once, and differs in nothing else. What to do next is decided purely, from what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.api.errors import AlreadyExists
from moorage.api.resources import Unstructured
from moorage.embedded.controllers import kinds, ownership
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import (
    is_finished,
    is_ready,
    is_terminating,
    next_available,
    phase,
    seconds_to_available,
)
from moorage.embedded.controllers.ownership import (
    RevisionHistory,
    claim,
    index_orphans,
    owner_reference,
    pod_from,
    possible_owners,
    resolve,
)
from moorage.embedded.controllers.replica_sets import wanted_replicas

Raw = dict[str, Any]
REVISION_LABEL = "controller-revision-hash"
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class SetMember:
    """One pod of the set."""

    ordinal: int
    revision: str
    ready: bool = False
    """Running and ready."""
    available: bool = False
    terminating: bool = False
    finished: bool = False

    @property
    def healthy(self) -> bool:
        return self.ready and not self.terminating


@dataclass(frozen=True, slots=True)
class WantedMember:
    """What the set asks for."""

    start: int
    replicas: int
    current: str
    update: str
    ordered: bool = True
    rolling: bool = True
    partition: int = 0
    max_unavailable: int = 1

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)

    def revision_for(self, ordinal: int) -> str:
        below = self.rolling and ordinal < self.start + self.partition
        return self.current if below else self.update


@dataclass(slots=True)
class NextStep:
    """Ordinals to make, with their revision, and ordinals to delete."""

    create: dict[int, str] = field(default_factory=dict)
    delete: list[int] = field(default_factory=list)


def next_step(wanted: WantedMember, members: Mapping[int, SetMember]) -> NextStep:
    step = NextStep()
    if not _fill(wanted, members, step):
        return step
    if not _condemn(wanted, members, step):
        return step
    if wanted.rolling:
        _update(wanted, members, step)
    return step


def _fill(wanted: WantedMember, members: Mapping[int, SetMember], step: NextStep) -> bool:
    """Makes what is missing; False when the rest has to wait."""
    for ordinal in wanted.ordinals:
        member = members.get(ordinal)
        if member is None:
            step.create[ordinal] = wanted.revision_for(ordinal)
        elif member.finished and not member.terminating:
            step.delete.append(ordinal)  # it is made anew once it is gone
        elif not wanted.ordered or (member.available and not member.terminating):
            continue
        if wanted.ordered:
            return False
    return not step.create and not step.delete


def _condemn(wanted: WantedMember, members: Mapping[int, SetMember], step: NextStep) -> bool:
    """Removes what is beyond the wanted number, the last first; False when the rest has to wait."""
    condemned = sorted((o for o in members if o not in wanted.ordinals), reverse=True)
    if not condemned:
        return True
    if not wanted.ordered:
        step.delete += [o for o in condemned if not members[o].terminating]
        return False
    if not any(member.terminating for member in members.values()):
        step.delete.append(condemned[0])
    return False


def _update(wanted: WantedMember, members: Mapping[int, SetMember], step: NextStep) -> None:
    """Removes pods of other revisions, the last first, as long as few enough are unwell."""
    unwell = sum(not members[o].healthy for o in wanted.ordinals if o in members)
    for ordinal in sorted(wanted.ordinals, reverse=True):
        member = members.get(ordinal)
        if ordinal < wanted.start + wanted.partition or member is None:
            return
        if member.revision != wanted.update and not member.terminating:
            if unwell >= wanted.max_unavailable and member.healthy:
                return
            step.delete.append(ordinal)
            unwell += member.healthy
        if unwell >= wanted.max_unavailable:
            return


class StatefulSets(Controller):
    """The controller of StatefulSets."""

    name = "statefulset-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.sets = self.watch(kinds.STATEFUL_SETS, own_key)
        self.pods = index_orphans(self.watch(kinds.PODS, self._keys_of))
        self.claims = self.caches.of(kinds.CLAIMS)
        self.history = RevisionHistory(self.writer, self.caches.of(kinds.CONTROLLER_REVISIONS), kinds.STATEFUL_SETS)

    def _keys_of(self, pod: Unstructured) -> Iterable[str]:
        return possible_owners(self.sets, pod)

    async def reconcile(self, key: str) -> float | None:
        owner = self.sets.get(key)
        if owner is None or is_terminating(owner):
            return None
        await claim(self.writer, kinds.STATEFUL_SETS, owner, self.pods)
        update = await self.history.present(owner)
        current = self._current_revision(owner, update)
        wanted = _wanted(owner, current.name, update.name)
        await self._step(owner, wanted, {r.name: r for r in (current, update)})
        await self._report(key, wanted)
        await self.history.drop_old(owner, {current.name, update.name, *self._revisions_in_use(owner)})
        seconds = owner.raw["spec"].get("minReadySeconds") or 0
        return next_available(self.pods.owned_by(owner), seconds, self.clock.wall())

    def _current_revision(self, owner: Unstructured, update: Unstructured) -> Unstructured:
        name = (owner.raw.get("status") or {}).get("currentRevision")
        return next((r for r in self.history.of(owner) if r.name == name), update)

    def _members(self, owner: Unstructured) -> dict[int, tuple[Unstructured, SetMember]]:
        ready_for = owner.raw["spec"].get("minReadySeconds") or 0
        found = {}
        for pod in self.pods.owned_by(owner):
            ordinal = ordinal_of(owner, pod)
            if ordinal is None:
                continue
            ready = phase(pod) == "Running" and is_ready(pod)
            available = ready and seconds_to_available(pod, ready_for, self.clock.wall()) == 0.0
            revision = pod.labels.get(REVISION_LABEL, "")
            member = SetMember(ordinal, revision, ready, available, is_terminating(pod), is_finished(pod))
            found[ordinal] = (pod, member)
        return found

    async def _step(self, owner: Unstructured, wanted: WantedMember, revisions: dict[str, Unstructured]) -> None:
        members = self._members(owner)
        step = next_step(wanted, {ordinal: member for ordinal, (_, member) in members.items()})
        for ordinal, revision in step.create.items():
            await self._create(owner, ordinal, revisions[revision])
        for ordinal in step.delete:
            pod = members[ordinal][0]
            if ordinal not in wanted.ordinals:
                await self._doom_claims(owner, pod, ordinal)
            await self.writer.delete(kinds.PODS, pod)
            text = f"delete Pod {pod.name} in StatefulSet {owner.name} successful"
            self.event(owner, "SuccessfulDelete", text)

    async def _create(self, owner: Unstructured, ordinal: int, revision: Unstructured) -> None:
        for raw in claims_for(owner, ordinal):
            meta = raw["metadata"]
            if self.claims.get(f"{meta['namespace']}/{meta['name']}") is None:
                await self._create_claim(owner, raw)
        template = ownership.template_of(revision)
        try:
            pod = await self.writer.create(kinds.PODS, pod_for(owner, ordinal, template, revision.name))
        except AlreadyExists:
            await self.writer.refresh(kinds.PODS, f"{owner.name}-{ordinal}", owner.namespace)
            raise
        text = f"create Pod {pod.name} in StatefulSet {owner.name} successful"
        self.event(owner, "SuccessfulCreate", text)

    async def _create_claim(self, owner: Unstructured, raw: Raw) -> None:
        name = raw["metadata"]["name"]
        try:
            await self.writer.create(kinds.CLAIMS, raw)
        except AlreadyExists:
            await self.writer.refresh(kinds.CLAIMS, name, owner.namespace)
            return
        pod = f"{owner.name}-{raw['metadata']['name'].rpartition('-')[2]}"
        text = f"create Claim {name} Pod {pod} in StatefulSet {owner.name} success"
        self.event(owner, "SuccessfulCreate", text)

    async def _doom_claims(self, owner: Unstructured, pod: Unstructured, ordinal: int) -> None:
        """With whenScaled: Delete, the claims of a pod that is scaled away go with it."""
        if (owner.raw["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled") != "Delete":
            return
        doom = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        for raw in claims_for(owner, ordinal):
            found = self.claims.get(f"{owner.namespace}/{raw['metadata']['name']}")
            if found is not None:
                await self.writer.patch(kinds.CLAIMS, found, {"metadata": {"ownerReferences": [doom]}})

    async def _report(self, key: str, wanted: WantedMember) -> None:
        owner = self.sets.get(key)
        if owner is not None:
            members = [member for _, member in self._members(owner).values()]
            status = status_of(owner, wanted, members)
            await self.writer.update_status(kinds.STATEFUL_SETS, owner, status)

    def _revisions_in_use(self, owner: Unstructured) -> set[str]:
        return {pod.labels.get(REVISION_LABEL, "") for pod in self.pods.owned_by(owner)}


def ordinal_of(owner: Unstructured, pod: Unstructured) -> int | None:
    """The number in the pod's name; None when it is not named as one of the set's."""
    parent, _, number = pod.name.rpartition("-")
    return int(number) if parent == owner.name and number.isascii() and number.isdigit() else None


def _wanted(owner: Unstructured, current: str, update: str) -> WantedMember:
    spec = owner.raw["spec"]
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    replicas = wanted_replicas(owner)
    return WantedMember(
        start=int((spec.get("ordinals") or {}).get("start") or 0),
        replicas=replicas,
        current=current,
        update=update,
        ordered=(spec.get("podManagementPolicy") or "OrderedReady") == "OrderedReady",
        rolling=(strategy.get("type") or "RollingUpdate") == "RollingUpdate",
        partition=int(rolling.get("partition") or 0),
        max_unavailable=max(1, resolve(rolling.get("maxUnavailable"), replicas, up=True, default=1)),
    )


def pod_for(owner: Unstructured, ordinal: int, template: Raw, revision: str) -> Raw:
    """The pod of one ordinal, with its name, its host name and its claims."""
    name = f"{owner.name}-{ordinal}"
    labels = {REVISION_LABEL: revision, POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal)}
    raw = pod_from(template, kinds.STATEFUL_SETS, owner, name=name, labels=labels)
    spec = {**raw["spec"], "hostname": name}
    if owner.raw["spec"].get("serviceName"):
        spec["subdomain"] = owner.raw["spec"]["serviceName"]
    own = {c["metadata"]["name"]: f"{c['metadata']['name']}-{name}" for c in _claim_templates(owner)}
    if own:
        others = [v for v in spec.get("volumes") or () if v.get("name") not in own]
        claimed = [{"name": v, "persistentVolumeClaim": {"claimName": c}} for v, c in own.items()]
        spec["volumes"] = [*others, *claimed]
    return {**raw, "spec": spec}


def claims_for(owner: Unstructured, ordinal: int) -> list[Raw]:
    """The claims of one ordinal."""
    policy = owner.raw["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    made = []
    for template in _claim_templates(owner):
        meta = template.get("metadata") or {}
        matched = (owner.raw["spec"].get("selector") or {}).get("matchLabels") or {}
        new = {
            **{field: meta[field] for field in ("annotations",) if meta.get(field)},
            "name": f"{meta['name']}-{owner.name}-{ordinal}",
            "namespace": owner.namespace,
            "labels": {**(meta.get("labels") or {}), **matched},
        }
        if policy.get("whenDeleted") == "Delete":
            new["ownerReferences"] = [{**owner_reference(kinds.STATEFUL_SETS, owner), "controller": False}]
        made.append({"metadata": new, "spec": template.get("spec") or {}})
    return made


def _claim_templates(owner: Unstructured) -> list[Raw]:
    return list(owner.raw["spec"].get("volumeClaimTemplates") or ())


def status_of(owner: Unstructured, wanted: WantedMember, members: Iterable[SetMember]) -> Raw:
    there = list(members)
    living = [m for m in there if not m.terminating]
    updated = sum(m.revision == wanted.update for m in living)
    ready = sum(m.ready for m in there)
    status: Raw = {
        "observedGeneration": owner.metadata.generation,
        "replicas": len(there),
        "readyReplicas": ready,
        "availableReplicas": sum(m.available for m in there),
        "updatedReplicas": updated,
        "currentRevision": wanted.current,
        "updateRevision": wanted.update,
        "collisionCount": int((owner.raw.get("status") or {}).get("collisionCount") or 0),
    }
    everything_new = updated == ready == len(there) == wanted.replicas and wanted.rolling
    if everything_new and not wanted.partition:
        status["currentRevision"] = wanted.update
    current = status["currentRevision"]
    status["currentReplicas"] = sum(m.revision == current for m in living)
    zeros = ("readyReplicas", "updatedReplicas", "currentReplicas")
    return {field: value for field, value in status.items() if value or field not in zeros}
