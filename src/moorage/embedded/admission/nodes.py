"""Nodes and namespaces."""

from __future__ import annotations

import ipaddress

from moorage.embedded.admission import syntax
from moorage.embedded.admission.placement import check_taints
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy
from moorage.embedded.admission.syntax import check_amount
from moorage.store.objects import Raw, with_meta
from moorage.store.rules import Cluster

_NAME_LABEL = "kubernetes.io/metadata.name"
_CIDR_FIXED = 'node updates may not change podCIDR except from "" to valid'


def _default_node(raw: Raw) -> Raw:
    """Allocatable defaults to capacity; podCIDR and the first of podCIDRs are one."""
    spec, status = dict(raw.get("spec") or {}), dict(raw.get("status") or {})
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
                f"spec.podCIDRs[{index}]",
                cidr,
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
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


def _admit_namespace(raw: Raw, cluster: Cluster) -> Raw:
    finalizers = list(raw["spec"].get("finalizers") or ())
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    return {**raw, "spec": {**raw["spec"], "finalizers": finalizers}}


def _carry_namespace(new: Raw, old: Raw, cluster: Cluster) -> Raw:
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
)
NAMESPACES = KindStrategy(
    default=_default_namespace,
    admit=_admit_namespace,
    carry=_carry_namespace,
    check=_check_namespace,
    name=syntax.label,
    first_status={"phase": "Active"},
)
