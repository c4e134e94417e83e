"""On which nodes a DaemonSet's pods run, and what they look like. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.api import decoding, resources
from mooring.api.node_selectors import required_node_affinity
from mooring.api.pod import Pod
from mooring.api.resources import Unstructured
from mooring.api.taints import NO_EXECUTE, NO_SCHEDULE, Taint, find_untolerated
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.pod_states import node_name
from mooring.embedded.controllers.templates import pod_from

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
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": node_affinity},
        "tolerations": with_tolerations(spec),
    }


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
