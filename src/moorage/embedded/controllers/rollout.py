"""The ReplicaSets of a Deployment: which is new, which to drop, how they share the replicas. Pure.

A rolling update goes in steps between two limits: never more than replicas + maxSurge pods in all, never
fewer than replicas - maxUnavailable that are available. When the Deployment itself is scaled while several
sets have pods, each grows or shrinks in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moorage.api.resources import Unstructured
from moorage.embedded.controllers.kinds import is_terminating
from moorage.embedded.controllers.ownership import owner_reference, resolve, short_hash, shortened, without_label

Raw = dict[str, Any]
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
}


@dataclass(frozen=True, slots=True)
class SetSize:
    """One ReplicaSet, as far as its size matters."""

    name: str
    replicas: int
    available: int
    created: str
    size_then: int = 0
    """The most pods the Deployment allowed when this set was last scaled; 0 when unknown."""


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """What the Deployment asks for."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, spec: dict[str, Any]) -> RolloutLimits:
        wanted = spec.get("replicas")
        replicas = 1 if wanted is None else int(wanted)
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return cls(replicas, 0, 0)
        rolling = strategy.get("rollingUpdate") or {}
        surge = resolve(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = resolve(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1  # as upstream: otherwise nothing could ever happen
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def most(self) -> int:
        return self.replicas + self.surge if self.replicas else 0


def step(limits: RolloutLimits, new: SetSize, old: Sequence[SetSize]) -> dict[str, int]:
    """The next sizes of a rolling update, for the sets that change."""
    grown = grow(limits, new, old)
    if grown != new.replicas:
        return {new.name: grown}
    return shrink(limits, new, old)


def grow(limits: RolloutLimits, new: SetSize, old: Sequence[SetSize]) -> int:
    """The size of the new set."""
    if new.replicas > limits.replicas:
        return limits.replicas
    allowed = limits.replicas + limits.surge - new.replicas - sum(one.replicas for one in old)
    return new.replicas + max(0, min(allowed, limits.replicas - new.replicas))


def shrink(limits: RolloutLimits, new: SetSize, old: Sequence[SetSize]) -> dict[str, int]:
    """The sizes of old sets that shrink: first what is not available anyway, then as the new one allows."""
    least = limits.replicas - limits.unavailable
    total = new.replicas + sum(one.replicas for one in old)
    spare = total - least - (new.replicas - new.available)
    if spare <= 0:
        return {}
    ordered = sorted(old, key=lambda one: (one.created, one.name))
    cleaned = []
    for one in ordered:
        gone = min(spare, max(0, one.replicas - one.available))
        spare -= gone
        cleaned.append(replace(one, replicas=one.replicas - gone))
    beyond = new.available + sum(one.available for one in old) - least
    sizes = {}
    for before, one in zip(ordered, cleaned, strict=True):
        gone = max(0, min(one.replicas, beyond))
        beyond -= gone
        if one.replicas - gone != before.replicas:
            sizes[one.name] = one.replicas - gone
    return sizes


def in_proportion(limits: RolloutLimits, sets: Sequence[SetSize]) -> dict[str, int]:
    """New sizes when the Deployment is scaled while several sets have pods; the largest gets the rest."""
    to_add = limits.most - sum(one.replicas for one in sets)
    direction = 1 if to_add > 0 else -1
    ordered = sorted(sets, key=lambda one: (one.replicas, one.created), reverse=True)
    if to_add < 0:
        ordered = sorted(sets, key=lambda one: (-one.replicas, one.created))
    sizes = {one.name: one.replicas for one in ordered}
    remaining = to_add
    for one in ordered:
        if not to_add:
            break
        share = _share(limits, one)
        share = max(0, min(share, remaining)) if direction > 0 else min(0, max(share, remaining))
        sizes[one.name] += share
        remaining -= share
    if ordered and remaining:
        sizes[ordered[0].name] = max(0, sizes[ordered[0].name] + remaining)
    return {one.name: sizes[one.name] for one in ordered if sizes[one.name] != one.replicas}


def _share(limits: RolloutLimits, one: SetSize) -> int:
    if not limits.replicas:
        return -one.replicas
    then = one.size_then or limits.most
    return round(one.replicas * limits.most / then) - one.replicas


def find_new(deployment: Unstructured, sets: Iterable[Unstructured]) -> Unstructured | None:
    """The oldest set with the Deployment's present template."""
    wanted = without_label(deployment.raw["spec"]["template"], HASH_LABEL)
    for one in sorted(sets, key=lambda s: (s.metadata.creation_timestamp or "", s.name)):
        if without_label(one.raw["spec"]["template"], HASH_LABEL) == wanted:
            return one
    return None


def revision(obj: Unstructured) -> int:
    text = obj.annotations.get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def next_revision(old: Iterable[Unstructured]) -> int:
    return max((revision(one) for one in old), default=0) + 1


def size_of(one: Unstructured) -> SetSize:
    spec, status = one.raw.get("spec") or {}, one.raw.get("status") or {}
    replicas = spec.get("replicas")
    then = one.annotations.get(MAXIMUM, "")
    return SetSize(
        one.name,
        1 if replicas is None else int(replicas),
        int(status.get("availableReplicas") or 0),
        one.metadata.creation_timestamp or "",
        int(then) if then.isdigit() else 0,
    )


def annotations_for(
    deployment: Unstructured, limits: RolloutLimits, number: int, current: Unstructured | None = None
) -> dict[str, str]:
    """The annotations of the new set: the Deployment's, its revision, and the size it was scaled for."""
    kept = dict(current.annotations) if current is not None else {}
    copied = {key: value for key, value in deployment.annotations.items() if key not in _NOT_COPIED}
    before = revision(current) if current is not None else 0
    number = max(number, before)
    made = {**kept, **copied, REVISION: str(number), **scale_annotations(limits)}
    if current is not None and 0 < before < number:
        past = [n for n in kept.get(HISTORY, "").split(",") if n]
        made[HISTORY] = ",".join([*past, str(before)])
    return made


def scale_annotations(limits: RolloutLimits) -> dict[str, str]:
    return {DESIRED: str(limits.replicas), MAXIMUM: str(limits.replicas + limits.surge)}


def make_set(deployment: Unstructured, resource: Any, limits: RolloutLimits, number: int, replicas: int) -> Raw:
    """The new ReplicaSet. Its name tells the template, so making it twice gives one."""
    spec = deployment.raw["spec"]
    template = spec["template"]
    collisions = int((deployment.raw.get("status") or {}).get("collisionCount") or 0)
    digest = short_hash(template, collisions)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
    selector = spec.get("selector") or {}
    matched = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": shortened(deployment.name, digest),
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": annotations_for(deployment, limits, number),
            "ownerReferences": [owner_reference(resource, deployment)],
        },
        "spec": {
            "replicas": replicas,
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            "selector": {**selector, "matchLabels": matched},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def to_drop(deployment: Unstructured, old: Sequence[Unstructured]) -> list[Unstructured]:
    """Old sets without pods beyond revisionHistoryLimit, the oldest revisions first."""
    limit = deployment.raw["spec"].get("revisionHistoryLimit")
    keep = 10 if limit is None else int(limit)
    empty = [one for one in old if _is_empty(one)]
    ordered = sorted(empty, key=lambda one: (revision(one), one.name))
    return ordered[: max(0, len(ordered) - keep)]


def _is_empty(one: Unstructured) -> bool:
    status = one.raw.get("status") or {}
    observed = int(status.get("observedGeneration") or 0) >= one.metadata.generation
    return not is_terminating(one) and not status.get("replicas") and not size_of(one).replicas and observed
