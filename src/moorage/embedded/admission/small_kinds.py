"""The strategies of small kinds: nodes, namespaces, priorities, budgets, config, leases, events, quotas."""

from __future__ import annotations

import base64
import binascii
import ipaddress

from moorage.api import resources
from moorage.embedded.admission import syntax
from moorage.embedded.admission.pod_spec import check_taints
from moorage.embedded.admission.problems import NOT_NEGATIVE, Problems
from moorage.embedded.admission.strategy import KindStrategy, check_label_selector
from moorage.embedded.admission.syntax import amount, check_amount
from moorage.embedded.admission.workloads import check_share, limit_share
from moorage.store import refusals
from moorage.store.objects import Raw, with_meta
from moorage.store.rules import StoreCluster

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_SIZE_LIMIT = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_NOTE_LIMIT = 1024
_OLD_EVENT_FIELDS = ("deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount")
_UNSET_OF_EVENTS: Raw = {
    "eventTime": None,
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedSource": {},
    "regarding": {},
}
_NAME_LABEL = "kubernetes.io/metadata.name"
_UNKNOWN_NODE = dict.fromkeys(
    (
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ),
    "",
)
_CIDR_FIXED = 'node updates may not change podCIDR except from "" to valid'


def _default_class(raw: Raw) -> Raw:
    return {"value": 0, "preemptionPolicy": "PreemptLowerPriority", **raw}


def _admit_class(raw: Raw, cluster: StoreCluster) -> Raw:
    """There is one default at most."""
    if raw.get("globalDefault"):
        name = raw["metadata"]["name"]
        for other in cluster.every(resources.PRIORITY_CLASSES):
            if other.get("globalDefault") and other["metadata"]["name"] != name:
                why = f"PriorityClass {other['metadata']['name']} is already marked as default. "
                raise refusals.forbidden(resources.PRIORITY_CLASSES, name, why + "Only one default can exist")
    return raw


def _carry_class(new: Raw, old: Raw, cluster: StoreCluster) -> Raw:
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
        problems.not_supported("spec.unhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"], policies)
    check_label_selector(spec.get("selector"), "spec.selector", problems)


PRIORITY_CLASSES = KindStrategy(
    default=_default_class, admit=_admit_class, carry=_carry_class, check=_check_class, check_update=_check_class_update
)
POD_DISRUPTION_BUDGETS = KindStrategy(
    check=_check_budget,
    first_status=dict.fromkeys(("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0),
)


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


def _default_lease(raw: Raw) -> Raw:
    return {"spec": {}, **raw}


def _check_lease(raw: Raw, problems: Problems) -> None:
    spec = raw.get("spec") or {}
    problems.positive("spec.leaseDurationSeconds", spec.get("leaseDurationSeconds"))
    problems.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def _default_limits(raw: Raw) -> Raw:
    """A limit defaults to the maximum, a request to the limit or the minimum (pkg/apis/core/v1/defaults.go)."""
    limits = [_fill_in_limit(limit) for limit in (raw.get("spec") or {}).get("limits") or ()]
    return {**raw, "spec": {**(raw.get("spec") or {}), "limits": limits or None}}


def _check_limits(raw: Raw, problems: Problems) -> None:
    for index, limit in enumerate(raw["spec"]["limits"] or ()):
        for field in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"):
            for name, value in (limit.get(field) or {}).items():
                amount(value, f"spec.limits[{index}].{field}[{name}]", problems)


def _default_quota(raw: Raw) -> Raw:
    return {"spec": {}, **raw}


def _check_quota(raw: Raw, problems: Problems) -> None:
    for name, value in (raw["spec"].get("hard") or {}).items():
        nanos = amount(value, f"spec.hard[{name}]", problems)
        if nanos is not None and nanos < 0:
            problems.invalid(f"spec.hard[{name}]", value, NOT_NEGATIVE)


def _fill_in_limit(limit: Raw) -> Raw:
    if limit.get("type") != "Container":
        return limit
    default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
    filled = {"default": default, "defaultRequest": request}
    return {**limit, **{field: amounts for field, amounts in filled.items() if amounts}}


def _default_event(raw: Raw) -> Raw:
    """Times that are not set are null, as kube-apiserver writes them; clients sort by them."""
    return {**_UNSET_OF_EVENTS, **raw}


def _check_new_event(raw: Raw, problems: Problems) -> None:
    """Events in the new form must say more. Old ones, known by their old fields, are taken as they are."""
    if any(raw.get(field) for field in _OLD_EVENT_FIELDS) or raw.get("eventTime") is None:
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


CONFIG_MAPS = KindStrategy(check=_check_config_map, check_update=_check_fixed_data, generation=False)
SECRETS = KindStrategy(
    default=_default_secret, check=_check_secret, check_update=_check_secret_update, generation=False
)
LEASES = KindStrategy(default=_default_lease, check=_check_lease, generation=False)
RESOURCE_QUOTAS = KindStrategy(default=_default_quota, check=_check_quota, first_status={}, generation=False)
LIMIT_RANGES = KindStrategy(default=_default_limits, check=_check_limits, generation=False)
EVENTS = KindStrategy(default=_default_event, check_new=_check_new_event, generation=False)


def _default_node(raw: Raw) -> Raw:
    """Allocatable defaults to capacity; podCIDR and the first of podCIDRs are one."""
    spec, status = dict(raw.get("spec") or {}), dict(raw.get("status") or {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status["nodeInfo"] = {**_UNKNOWN_NODE, **(status.get("nodeInfo") or {})}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = status["capacity"]
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    return {**raw, "spec": spec, "status": status}


def _check_node(raw: Raw, problems: Problems) -> None:
    check_taints(raw["spec"].get("taints") or (), "metadata.taints", problems)
    for index, cidr in enumerate(raw["spec"].get("podCIDRs") or ()):
        if not _is_cidr(cidr):
            problems.invalid(
                f"spec.podCIDRs[{index}]", cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            )
    _check_amounts(raw.get("status") or {}, problems)


def _check_amounts(status: Raw, problems: Problems) -> None:
    for field in ("capacity", "allocatable"):
        for resource, value in (status.get(field) or {}).items():
            check_amount(resource, value, f"status.{field}.{resource}", problems)


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _check_node_update(new: Raw, old: Raw, problems: Problems) -> None:
    after, before = new["spec"], old.get("spec") or {}
    if before.get("podCIDRs") and before["podCIDRs"] != after.get("podCIDRs"):
        problems.forbidden("spec.podCIDRs", _CIDR_FIXED)
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        how = "modified" if after.get("providerID") else "cleared"
        problems.invalid("spec.providerID", None, f"field cannot be {how} once set")


def _check_node_status(new: Raw, old: Raw, problems: Problems) -> None:
    status = new.get("status") or {}
    _check_amounts(status, problems)
    seen: list[Raw] = []
    for index, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            problems.duplicate(f"status.addresses[{index}]", address)
        seen.append(address)


def _default_namespace(raw: Raw) -> Raw:
    meta, raw = raw["metadata"], {**raw, "spec": raw.get("spec") or {}}
    return with_meta(raw, labels={**(meta.get("labels") or {}), _NAME_LABEL: meta["name"]})


def _admit_namespace(raw: Raw, cluster: StoreCluster) -> Raw:
    finalizers = list(raw["spec"].get("finalizers") or ())
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    return {**raw, "spec": {**raw["spec"], "finalizers": finalizers}}


def _carry_namespace(new: Raw, old: Raw, cluster: StoreCluster) -> Raw:
    """The spec of a namespace changes through its finalize subresource only."""
    return {**new, "spec": old.get("spec") or {}}


def _check_namespace(raw: Raw, problems: Problems) -> None:
    for finalizer in raw["spec"].get("finalizers") or ():
        problems.all_invalid("spec.finalizers", finalizer, syntax.qualified(finalizer))


NODES = KindStrategy(
    default=_default_node,
    default_status=_default_node,
    check=_check_node,
    check_update=_check_node_update,
    check_status=_check_node_status,
    generation=False,
)
NAMESPACES = KindStrategy(
    default=_default_namespace,
    admit=_admit_namespace,
    carry=_carry_namespace,
    check=_check_namespace,
    name=syntax.label,
    first_status={"phase": "Active"},
    generation=False,
)
