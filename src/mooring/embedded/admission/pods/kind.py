"""The rules of pods as a kind: the spec's rules, and what admission and the server's strategy add."""

from __future__ import annotations

from typing import Any

from mooring.api import quantity, resources
from mooring.api.errors import QuantityError
from mooring.embedded.admission.kinds import Rules
from mooring.embedded.admission.pods import defaults, updates
from mooring.embedded.admission.pods.spec import check_new_pod, check_spec
from mooring.embedded.admission.problems import Problems
from mooring.embedded.admission.remembering import remember_good, remember_result
from mooring.store import refusals, rules
from mooring.store.objects import Raw
from mooring.store.rules import Cluster

_QOS_RESOURCES = ("cpu", "memory")


_fill_in_spec = remember_result(defaults.fill_in_pod_spec)
_check_spec = remember_good(check_spec)


def _default(raw: Raw) -> Raw:
    return {**raw, "spec": _fill_in_spec(raw.get("spec") or {})}


def _admit(raw: Raw, cluster: Cluster) -> Raw:
    spec, labels = dict(raw["spec"]), raw["metadata"].get("labels") or {}
    _admit_priority(raw["metadata"]["name"], spec, cluster)
    if spec.get("affinity"):
        spec["affinity"] = rules.with_label_keys(spec["affinity"], labels)
    if spec.get("topologySpreadConstraints"):
        spec["topologySpreadConstraints"] = [
            rules.with_keys_of_term(constraint, labels) for constraint in spec["topologySpreadConstraints"]
        ]
    status = {**(raw.get("status") or {}), "qosClass": qos_class(spec)}
    return {**raw, "spec": spec, "status": rules.pod_status(status, spec)}


def _admit_priority(pod: str, spec: Raw, cluster: Cluster) -> None:
    """From the class; a number or policy of the pod's own must be what the class says."""
    given, policy = spec.pop("priority", None), spec.pop("preemptionPolicy", None)
    rules.fill_in_priority(pod, spec, cluster.every(resources.PRIORITY_CLASSES))
    why = "must not be provided in pod spec; priority admission controller computed"
    tail = "from the given PriorityClass name"
    if given is not None and given != spec["priority"]:
        text = f"the integer value of priority ({given}) {why} {spec['priority']} {tail}"
        raise refusals.forbidden(resources.PODS, pod, text)
    if policy is not None and policy != spec["preemptionPolicy"]:
        text = f"the string value of PreemptionPolicy ({policy}) {why} {spec['preemptionPolicy']} {tail}"
        raise refusals.forbidden(resources.PODS, pod, text)


def qos_class(spec: Raw) -> str:
    """Guaranteed, Burstable or BestEffort, by the cpu and memory of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    limited_everywhere, asks = bool(containers), False
    for container in containers:
        amounts = container.get("resources") or {}
        limits, requests = _positive(amounts.get("limits")), _positive(amounts.get("requests"))
        asks = asks or bool(limits or requests)
        if limits.keys() != set(_QOS_RESOURCES) or any(
            requests.get(r, limits[r]) != limits[r] for r in limits
        ):
            limited_everywhere = False
    if not asks:
        return "BestEffort"
    return "Guaranteed" if limited_everywhere else "Burstable"


def _positive(amounts: dict[str, Any] | None) -> dict[str, int]:
    """The amounts that count, in nano-units. A bad quantity counts as none; it is refused elsewhere."""
    if not amounts:
        return {}
    found: dict[str, int] = {}
    for resource in _QOS_RESOURCES:
        try:
            nanos = quantity.parse(amounts.get(resource, 0))
        except QuantityError:
            continue
        if nanos > 0:
            found[resource] = nanos
    return found


def _check(raw: Raw, problems: Problems) -> None:
    _check_spec(raw["spec"], "spec", problems)


def _check_new(raw: Raw, problems: Problems) -> None:
    check_new_pod(raw["spec"], problems)


def _check_update(new: Raw, old: Raw, problems: Problems) -> None:
    updates.check_update(new["spec"], old["spec"], problems)


def _carry(new: Raw, old: Raw, cluster: Cluster) -> Raw:
    """Priority is decided once."""
    spec, before = dict(new["spec"]), old["spec"]
    for field in ("priority", "preemptionPolicy"):
        if field not in spec and field in before:
            spec[field] = before[field]
    return {**new, "spec": spec}


PODS = Rules(
    default=_default,
    admit=_admit,
    carry=_carry,
    check=_check,
    check_new=_check_new,
    check_update=_check_update,
    first_status={"phase": "Pending"},
)
