"""ReplicaSets as revisions of a Deployment: which is the new one, its number, its annotations, which to
drop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mooring.api.resources import Unstructured
from mooring.embedded.controllers.pod_states import is_terminating
from mooring.embedded.controllers.rolling import Limits, SetSize
from mooring.embedded.controllers.templates import owner_reference, short_hash, shortened, without_label

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
    deployment: Unstructured, limits: Limits, number: int, current: Unstructured | None = None
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


def scale_annotations(limits: Limits) -> dict[str, str]:
    return {DESIRED: str(limits.replicas), MAXIMUM: str(limits.replicas + limits.surge)}


def make_set(deployment: Unstructured, resource: Any, limits: Limits, number: int, replicas: int) -> Raw:
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
