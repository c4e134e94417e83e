"""Explain a workload: which of its pods exist, why others do not, and which are pending for what reason.

A pod that does not exist has no events. Why its controller could not create it is in the conditions of the owner (a
quota or a webhook refused), or in the events about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.api import resources as kinds
from moorage.api.errors import MoorageError
from moorage.api.pod import Pod, controller_of
from moorage.api.resources import Resource
from moorage.explain.explanation import Explanation
from moorage.explain.quotas import quota_remedies
from moorage.explain.trying import Remedy

Json = Mapping[str, Any]
NAMES = {
    "Deployment": ("deployment", "deployments", "deploy"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "Job": ("job", "jobs"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
}
OWNERS: dict[str, Resource] = {
    "Deployment": kinds.DEPLOYMENTS,
    # Read as they stand: the record types have no conditions.
    "ReplicaSet": kinds.custom("apps", "v1", "replicasets", "ReplicaSet"),
    "StatefulSet": kinds.custom("apps", "v1", "statefulsets", "StatefulSet"),
    "Job": kinds.JOBS,
    "DaemonSet": kinds.DAEMON_SETS,
}
REPLICA_SETS = OWNERS["ReplicaSet"]
MAX_MESSAGES = 3
MAX_GROUPS = 3
"""Groups of pending pods of which one pod is explained in full."""


def owner_kind(name: str) -> str:
    """Return the kind that a user means: `deploy`, `deployments` or `deployment.apps`; empty if it is no owner."""
    plain = name.lower().partition(".")[0]
    return next((kind for kind, names in NAMES.items() if plain in names), "")


@dataclass(slots=True)
class OwnerObjects:
    """An owner and what belongs to it, as far as the user may read it."""

    kind: str
    owner: Json
    sets: Sequence[Json] = ()
    """The ReplicaSets of a Deployment."""
    pods: Sequence[Pod] | None = None
    """The pods; None if they may not be listed."""
    events: Sequence[str] = ()
    """What warnings about the owner and its ReplicaSets say, the newest first."""
    gaps: list[str] = field(default_factory=list)
    """What could not be read, as sentences."""

    @property
    def key(self) -> str:
        meta = self.owner["metadata"]
        return f"{meta.get('namespace') or 'default'}/{meta['name']}"


@dataclass(slots=True)
class PendingGroup:
    """Pods that are pending for the same reason."""

    reason: str
    pods: list[Pod]
    explanation: Explanation | None = None
    """Of the first of them; None if the cluster may not be read."""

    def to_dict(self) -> dict[str, Any]:
        answer = None if self.explanation is None else self.explanation.to_dict()
        return {"reason": self.reason, "pods": [pod.key for pod in self.pods], "explanation": answer}


@dataclass(slots=True)
class OwnerExplanation:
    """Which pods of an owner exist, and what keeps the others."""

    objects: OwnerObjects
    wanted: int
    existing: int
    headline: str
    facts: list[str]
    groups: list[PendingGroup]
    remedies: list[Remedy] = field(default_factory=list)

    @property
    def ends_well(self) -> bool:
        return self.existing >= self.wanted and not self.groups

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.objects.kind,
            "owner": self.objects.key,
            "headline": self.headline,
            "facts": self.facts,
            "wanted": self.wanted,
            "existing": self.existing,
            "pods": None if self.objects.pods is None else [pod.key for pod in self.objects.pods],
            "pending": [group.to_dict() for group in self.groups],
            "remedies": [{"text": each.text, "command": each.command} for each in self.remedies],
        }


def explain_owner(objects: OwnerObjects) -> OwnerExplanation:
    """Return what the objects say. The pending groups are explained by the caller, who has the cluster."""
    wanted, why = _wanted(objects)
    alive = None if objects.pods is None else [pod for pod in objects.pods if _counts(pod)]
    existing = len(alive) if alive is not None else int(_status(objects).get("replicas") or 0)
    groups = _groups(pod for pod in alive or () if not pod.spec.node_name)
    pending = sum(len(group.pods) for group in groups)
    missing = max(0, wanted - existing)
    messages = list(_messages(objects)) if missing else []
    facts = [*why, *messages, *objects.gaps]
    if missing and not messages and not why and not objects.gaps:
        facts.insert(0, f"Nothing says why: neither a condition nor an event of {objects.key} names a reason.")
    remedies = [remedy for text in messages for remedy in quota_remedies(text, objects.key.partition("/")[0], missing)]
    headline = _headline(objects, wanted, existing, pending if alive is not None else None)
    return OwnerExplanation(objects, wanted, existing, headline, facts, groups, remedies)


def _headline(objects: OwnerObjects, wanted: int, existing: int, pending: int | None) -> str:
    if existing > wanted:  # a rollout creates new pods before it deletes old ones
        said = f"{objects.kind} {objects.key}: {existing} pods exist, {existing - wanted} more than the {wanted} wanted"
    else:
        said = f"{objects.kind} {objects.key}: {existing} of {wanted} pods exist"
    if pending is None or not existing:
        return f"{said}."
    if not pending:
        return f"{said}, and all of them have a node."
    return f"{said}, and {pending} of them {'is' if pending == 1 else 'are'} pending."


def _wanted(objects: OwnerObjects) -> tuple[int, list[str]]:
    """Return how many pods the owner wants now, and what limits that."""
    spec, status = objects.owner.get("spec") or {}, _status(objects)
    if objects.kind == "DaemonSet":
        return int(status.get("desiredNumberScheduled") or 0), []
    if objects.kind == "Job":
        return _wanted_by_job(spec, status)
    replicas = spec.get("replicas")
    why = ["The rollout is paused (spec.paused)."] if spec.get("paused") else []
    return 1 if replicas is None else int(replicas), why


def _wanted_by_job(spec: Json, status: Json) -> tuple[int, list[str]]:
    if spec.get("suspend"):
        return 0, ["The job is suspended (spec.suspend)."]
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return 0, [f"The job has ended: {condition['type']}. {condition.get('message', '')}".strip()]
    parallel = spec.get("parallelism")
    wanted = 1 if parallel is None else int(parallel)
    if spec.get("completions") is not None:
        wanted = min(wanted, max(0, int(spec["completions"]) - int(status.get("succeeded") or 0)))
    return wanted, []


def _status(objects: OwnerObjects) -> Json:
    found: Json = objects.owner.get("status") or {}
    return found


def _messages(objects: OwnerObjects) -> Iterator[str]:
    """Yield why pods are missing: conditions first, then warnings, each once."""
    found: dict[str, None] = {}
    for obj in (*objects.sets, objects.owner):
        for condition in (obj.get("status") or {}).get("conditions") or ():
            failed = condition.get("type") == "ReplicaFailure" and condition.get("status") == "True"
            stuck = condition.get("type") == "Progressing" and condition.get("status") == "False"
            if (failed or stuck) and condition.get("message"):
                found[str(condition["message"])] = None
    if not found:
        found = dict.fromkeys(objects.events)
    yield from list(found)[:MAX_MESSAGES]


def _groups(pods: Iterable[Pod]) -> list[PendingGroup]:
    """Group pending pods by what the scheduler wrote, the largest group first."""
    found: dict[str, PendingGroup] = {}
    for pod in pods:
        reason = recorded_reason(pod)
        found.setdefault(reason, PendingGroup(reason, [])).pods.append(pod)
    return sorted(found.values(), key=lambda group: -len(group.pods))


def recorded_reason(pod: Pod) -> str:
    """Return why a pod is pending as its status says it: gates, or the message of the scheduler."""
    if pod.spec.scheduling_gates:
        return f"gated by {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or condition.reason
    return f"no message of the scheduler {pod.scheduler_name}"


def _counts(pod: Pod) -> bool:
    return not pod.is_terminal and not pod.is_terminating


def pods_of(owner: Json, sets: Iterable[Json], pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that the owner controls, itself or by its ReplicaSets."""
    uids = {str(obj["metadata"].get("uid")) for obj in (owner, *sets)}
    return [pod for pod in pods if (ref := controller_of(pod)) is not None and ref.uid in uids]


def sets_of(owner: Json, sets: Iterable[Json]) -> list[Json]:
    """Return the ReplicaSets that a Deployment controls."""
    uid = owner["metadata"].get("uid")
    return [
        each
        for each in sets
        if any(ref.get("controller") and ref.get("uid") == uid for ref in each["metadata"].get("ownerReferences") or ())
    ]


def not_in_snapshot(kind: str, name: str, namespace: str) -> MoorageError:
    """Return the error for an owner that a snapshot does not contain."""
    return MoorageError(
        f"The snapshot has no {kind} {namespace}/{name}. A snapshot holds the kinds that the plugins read, among them "
        "ReplicaSets and StatefulSets; ask about one of these, or leave --snapshot out to ask the cluster."
    )
