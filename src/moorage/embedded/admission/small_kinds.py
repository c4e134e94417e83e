"""Kinds with few rules: priorities, budgets, config maps, secrets, leases, events, RBAC bindings."""

from __future__ import annotations

import base64
import binascii

from moorage.api import resources
from moorage.embedded.admission import syntax
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy, check_label_selector
from moorage.embedded.admission.workloads import check_share, limit_share
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.rules import Cluster

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_SIZE_LIMIT = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_NOTE_LIMIT = 1024
_OLD_EVENT_FIELDS = (
    "deprecatedSource",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
    "deprecatedCount",
)
ROLES = KindStrategy(name=syntax.path_segment)


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


PRIORITY_CLASSES = KindStrategy(
    default=_default_class,
    admit=_admit_class,
    carry=_carry_class,
    check=_check_class,
    check_update=_check_class_update,
)
POD_DISRUPTION_BUDGETS = KindStrategy(check=_check_budget, first_status={})


def _check_config_map(raw: Raw, problems: Problems) -> None:
    texts, blobs = raw.get("data") or {}, raw.get("binaryData") or {}
    for field, data in (("data", texts), ("binaryData", blobs)):
        for key in data:
            problems.all_invalid(f"{field}[{key}]", key, syntax.config_key(key))
    for key in blobs.keys() & texts.keys():
        problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    size = sum(len(text.encode()) for text in texts.values())
    size += sum(_decoded_size(blob, f"binaryData[{key}]", problems) for key, blob in blobs.items())
    if size > _SIZE_LIMIT:
        problems.too_long("", _SIZE_LIMIT)


def _check_fixed_data(new: Raw, old: Raw, problems: Problems) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        problems.forbidden("immutable", _FIXED)
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            problems.forbidden(field, _FIXED)


def _default_secret(raw: Raw) -> Raw:
    """`stringData` is written into `data` and never stored."""
    raw = {"type": "Opaque", **raw}
    texts = raw.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        raw["data"] = {**(raw.get("data") or {}), **encoded}
    return raw


def _check_secret(raw: Raw, problems: Problems) -> None:
    data = raw.get("data") or {}
    for key in data:
        problems.all_invalid(f"data[{key}]", key, syntax.config_key(key))
    if sum(_decoded_size(blob, f"data[{key}]", problems) for key, blob in data.items()) > _SIZE_LIMIT:
        problems.too_long("data", _SIZE_LIMIT)


def _check_secret_update(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("type", new["type"], old.get("type"))
    _check_fixed_data(new, old, problems)


def _decoded_size(blob: str, path: str, problems: Problems) -> int:
    try:
        return len(base64.b64decode(blob, validate=True))
    except (binascii.Error, ValueError) as error:
        problems.invalid(path, blob[:40], f"must be base64: {error}")
        return 0


def _check_lease(raw: Raw, problems: Problems) -> None:
    spec = raw.get("spec") or {}
    problems.positive("spec.leaseDurationSeconds", spec.get("leaseDurationSeconds"))
    problems.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def _check_new_event(raw: Raw, problems: Problems) -> None:
    """Events in the new form must say more. Old ones, known by their old fields, are taken as they are."""
    if any(field in raw for field in _OLD_EVENT_FIELDS) or raw.get("eventTime") is None:
        return
    for field in ("reportingController", "reportingInstance", "action", "reason"):
        if not raw.get(field):
            problems.required(field)
    if raw.get("reportingController"):
        name = raw["reportingController"]
        problems.all_invalid("reportingController", name, syntax.qualified(name))
    for field in ("reportingInstance", "action", "reason"):
        if len(raw.get(field) or "") > 128:
            problems.invalid(field, "", "can have at most 128 characters")
    if len((raw.get("note") or "").encode()) > _NOTE_LIMIT:
        problems.invalid("note", "", f"can have at most {_NOTE_LIMIT} characters")
    if raw.get("type") not in ("Normal", "Warning"):
        problems.invalid("type", "", "has invalid value: " + str(raw.get("type") or ""))


def _check_role_binding_update(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("roleRef", new.get("roleRef"), old.get("roleRef"), "cannot change roleRef")


CONFIG_MAPS = KindStrategy(check=_check_config_map, check_update=_check_fixed_data)
SECRETS = KindStrategy(default=_default_secret, check=_check_secret, check_update=_check_secret_update)
LEASES = KindStrategy(check=_check_lease)
EVENTS = KindStrategy(check_new=_check_new_event)
ROLE_BINDINGS = KindStrategy(check_update=_check_role_binding_update, name=syntax.path_segment)
