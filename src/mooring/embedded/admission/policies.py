"""Priority classes and disruption budgets."""

from __future__ import annotations

from mooring.api import resources
from mooring.embedded.admission.kinds import Rules
from mooring.embedded.admission.problems import Problems
from mooring.embedded.admission.selectors import check_label_selector
from mooring.embedded.admission.templates import check_share, limit_share
from mooring.store import refusals
from mooring.store.objects import Raw
from mooring.store.rules import Cluster

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _default_class(raw: Raw) -> Raw:
    return {"value": 0, "preemptionPolicy": "PreemptLowerPriority", **raw}


def _admit_class(raw: Raw, cluster: Cluster) -> Raw:
    """There is one default at most."""
    if raw.get("globalDefault"):
        name = raw["metadata"]["name"]
        for other in cluster.every(resources.PRIORITY_CLASSES):
            if other.get("globalDefault") and other["metadata"]["name"] != name:
                why = f"PriorityClass {other['metadata']['name']} is already marked as default. "
                raise refusals.forbidden(resources.PRIORITY_CLASSES, name, why + "Only one default can exist")
    return raw


def _carry_class(new: Raw, old: Raw, cluster: Cluster) -> Raw:
    return _admit_class(new, cluster)


def _check_class(raw: Raw, problems: Problems) -> None:
    name, value = raw["metadata"].get("name") or "", raw["value"]
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value:
            problems.forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class, or its value is another",
            )
    elif value > _HIGHEST:
        problems.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if raw["preemptionPolicy"] not in ("Never", "PreemptLowerPriority"):
        problems.not_supported("preemptionPolicy", raw["preemptionPolicy"], ("Never", "PreemptLowerPriority"))


def _check_class_update(new: Raw, old: Raw, problems: Problems) -> None:
    if new["value"] != old.get("value", 0):
        problems.forbidden("value", "may not be changed in an update.")
    problems.unchanged("preemptionPolicy", new["preemptionPolicy"], old.get("preemptionPolicy"))


def _check_budget(raw: Raw, problems: Problems) -> None:
    spec = raw.get("spec") or {}
    shares = [field for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None]
    if len(shares) == 2:
        problems.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in shares:
        check_share(spec[field], f"spec.{field}", problems)
        limit_share(spec[field], f"spec.{field}", problems)
    policies = ("AlwaysAllow", "IfHealthyBudget")
    if spec.get("unhealthyPodEvictionPolicy") not in (None, *policies):
        problems.not_supported(
            "spec.unhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"], policies
        )
    check_label_selector(spec.get("selector"), "spec.selector", problems)


PRIORITY_CLASSES = Rules(
    default=_default_class,
    admit=_admit_class,
    carry=_carry_class,
    check=_check_class,
    check_update=_check_class_update,
)
POD_DISRUPTION_BUDGETS = Rules(check=_check_budget, first_status={})
