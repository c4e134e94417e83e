"""Rows of nodes and of what belongs to them: namespaces, leases, priority classes."""

from __future__ import annotations

from mooring.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    Cells,
    Column,
    Printer,
    boolean,
    integer,
    plain,
    wide,
)
from mooring.embedded.catalog.printing.values import (
    NONE,
    UNKNOWN,
    age,
    flag,
    mapping,
    maps,
    name_of,
    number,
    text,
)
from mooring.store.objects import Raw

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node(raw: Raw, now: float) -> Cells:
    info = mapping(raw, "status", "nodeInfo")
    kernel, architecture = text(info, "kernelVersion", default=UNKNOWN), text(info, "architecture")
    return [
        name_of(raw),
        _status(raw),
        _roles(raw),
        age(raw, now),
        text(info, "kubeletVersion"),
        _address(raw, "InternalIP"),
        _address(raw, "ExternalIP"),
        text(info, "osImage", default=UNKNOWN),
        f"{kernel} ({architecture})" if architecture else kernel,
        text(info, "containerRuntimeVersion", default=UNKNOWN),
    ]


def _status(raw: Raw) -> str:
    ready = [c.get("status") for c in maps(raw, "status", "conditions") if c.get("type") == "Ready"]
    state = ("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"
    return f"{state},SchedulingDisabled" if flag(raw, "spec", "unschedulable") else state


def _roles(raw: Raw) -> str:
    labels = mapping(raw, "metadata", "labels")
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(text(labels, _ROLE_LABEL))
    return ",".join(sorted(filter(None, roles))) or NONE


def _address(raw: Raw, kind: str) -> str:
    found = (text(a, "address") for a in maps(raw, "status", "addresses") if a.get("type") == kind)
    return next(found, NONE)


def _namespace(raw: Raw, now: float) -> Cells:
    return [name_of(raw), text(raw, "status", "phase"), age(raw, now)]


def _lease(raw: Raw, now: float) -> Cells:
    return [name_of(raw), text(raw, "spec", "holderIdentity"), age(raw, now)]


def _priority_class(raw: Raw, now: float) -> Cells:
    default, policy = flag(raw, "globalDefault"), text(raw, "preemptionPolicy")
    return [name_of(raw), number(raw, "value"), default, age(raw, now), policy]


NODES = Printer(
    (
        NAME,
        Column("Status", description="Whether the node is ready, and whether pods may be placed on it."),
        *plain("Roles"),
        AGE,
        Column("Version", description="The version its kubelet reports."),
        *wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    _node,
)
NAMESPACES = Printer((NAME, *plain("Status"), AGE), _namespace)
LEASES = Printer((NAME, *plain("Holder"), AGE), _lease)
PRIORITY_CLASSES = Printer(
    (NAME, integer("Value"), boolean("Global-Default"), AGE, *wide("PreemptionPolicy")), _priority_class
)
