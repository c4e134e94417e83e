"""Rows of what belongs to the cluster as a whole, and of kinds without columns of their own.

These are nodes, namespaces, leases, priority classes, events, configuration, identities, access rights and
quotas.

Events come in the core form or the new one: both groups show the same table.
"""

from __future__ import annotations

from moorage.embedded.catalog.kinds import CORE_EVENTS_VIEW
from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cells,
    Column,
    Printer,
    age,
    boolean,
    dig,
    flag,
    integer,
    mapping,
    maps,
    name_of,
    number,
    plain,
    since,
    text,
    wide,
)
from moorage.store.objects import Raw

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


def _event(raw: Raw, now: float) -> Cells:
    if "regarding" in raw:
        raw = CORE_EVENTS_VIEW.outward(raw)
    first = _moment(raw, now, "firstTimestamp", "eventTime")
    about, series = mapping(raw, "involvedObject"), dig(raw, "series")
    return [
        _last_seen(raw, first, now),
        text(raw, "type"),
        text(raw, "reason"),
        "/".join(filter(None, (text(about, "kind").lower(), text(about, "name")))),
        text(about, "fieldPath"),
        _source(raw),
        text(raw, "message").strip(),
        first,
        number(series, "count") if isinstance(series, dict) else number(raw, "count") or 1,
        name_of(raw),
    ]


def _last_seen(raw: Raw, first: str, now: float) -> str:
    if isinstance(dig(raw, "series"), dict):
        return since(dig(raw, "series", "lastObservedTime"), now)
    last = since(dig(raw, "lastTimestamp"), now)
    return first if last == UNKNOWN else last


def _moment(raw: Raw, now: float, *fields: str) -> str:
    """The first of the fields that is set."""
    ages = (since(dig(raw, field), now) for field in fields)
    return next((shown for shown in ages if shown != UNKNOWN), UNKNOWN)


def _source(raw: Raw) -> str:
    component = text(raw, "source", "component") or text(raw, "reportingComponent")
    instance = text(raw, "source", "host") or text(raw, "reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENTS = Printer(
    (
        *plain("Last Seen", "Type", "Reason", "Object"),
        *wide("Subobject", "Source"),
        *plain("Message"),
        *wide("First Seen"),
        Column("Count", "integer", priority=1),
        Column("Name", priority=1, format="name"),
    ),
    _event,
)


def _config_map(raw: Raw, now: float) -> Cells:
    return [name_of(raw), len(mapping(raw, "data")) + len(mapping(raw, "binaryData")), age(raw, now)]


def _secret(raw: Raw, now: float) -> Cells:
    return [name_of(raw), text(raw, "type", default="Opaque"), len(mapping(raw, "data")), age(raw, now)]


def _service_account(raw: Raw, now: float) -> Cells:
    return [name_of(raw), age(raw, now)]


def _role_binding(raw: Raw, now: float) -> Cells:
    role = f"{text(raw, 'roleRef', 'kind')}/{text(raw, 'roleRef', 'name')}"
    subjects = (_subjects(raw, kind) for kind in ("User", "Group", "ServiceAccount"))
    return [name_of(raw), role, age(raw, now), *subjects]


def _subjects(raw: Raw, kind: str) -> str:
    found = (subject for subject in maps(raw, "subjects") if subject.get("kind") == kind)
    return ", ".join("/".join(filter(None, (text(s, "namespace"), text(s, "name")))) for s in found)


def _quota(raw: Raw, now: float) -> Cells:
    hard, used = mapping(raw, "status", "hard"), mapping(raw, "status", "used")
    lines = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    requests = [line for name, line in lines.items() if not name.startswith("limits.")]
    limits = [line for name, line in lines.items() if name.startswith("limits.")]
    return [name_of(raw), ", ".join(requests), ", ".join(limits), age(raw, now)]


def _scale(raw: Raw, now: float) -> Cells:
    desired, present = number(raw, "spec", "replicas"), number(raw, "status", "replicas")
    return [name_of(raw), desired, present, age(raw, now)]


def _created(raw: Raw, now: float) -> Cells:
    return [name_of(raw), dig(raw, "metadata", "creationTimestamp")]


CONFIG_MAPS = Printer((NAME, integer("Data"), AGE), _config_map)
SECRETS = Printer((NAME, *plain("Type"), integer("Data"), AGE), _secret)
SERVICE_ACCOUNTS = Printer((NAME, AGE), _service_account)
ROLE_BINDINGS = Printer(
    (NAME, *plain("Role"), AGE, *wide("Users", "Groups", "ServiceAccounts")), _role_binding
)
RESOURCE_QUOTAS = Printer((NAME, *plain("Request", "Limit"), AGE), _quota)
SCALES = Printer((NAME, integer("Desired"), integer("Available"), AGE), _scale)
CREATED_AT = Printer((NAME, Column("Created At", "date", description="When it was created.")), _created)
"""For built-in kinds without columns of their own, such as roles and definitions of custom kinds."""
