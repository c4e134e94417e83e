"""The columns of kinds that belong to the cluster as a whole, and of kinds without columns of their own.

Both event groups have the same table, computed from the core form.
"""

from __future__ import annotations

from moorage.embedded.catalog.core_events import CORE_EVENTS_VIEW
from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Printer,
    PrinterColumn,
    Read,
    boolean,
    dig,
    flag,
    integer,
    mapping,
    maps,
    number,
    since,
    string,
    text,
    wide,
)
from moorage.store.objects import Raw

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node_status(raw: Raw, now: float) -> str:
    ready = [c.get("status") for c in maps(raw, "status", "conditions") if c.get("type") == "Ready"]
    state = ("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"
    return f"{state},SchedulingDisabled" if flag(raw, "spec", "unschedulable") else state


def _roles(raw: Raw, now: float) -> str:
    labels = mapping(raw, "metadata", "labels")
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(text(labels, _ROLE_LABEL))
    return ",".join(sorted(filter(None, roles))) or NONE


def _kernel(raw: Raw, now: float) -> str:
    info = dig(raw, "status", "nodeInfo")
    kernel, architecture = text(info, "kernelVersion", default=UNKNOWN), text(info, "architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


NODES = Printer(
    (
        NAME,
        string("Status", _node_status, description="Whether the node is ready and accepts new pods."),
        string("Roles", _roles),
        AGE,
        string("Version", ".status.nodeInfo.kubeletVersion", description="The version of its kubelet."),
        wide("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', NONE),
        wide("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', NONE),
        wide("OS-Image", ".status.nodeInfo.osImage", UNKNOWN),
        wide("Kernel-Version", _kernel),
        wide("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    )
)
NAMESPACES = Printer((NAME, string("Status", ".status.phase"), AGE))
LEASES = Printer((NAME, string("Holder", ".spec.holderIdentity"), AGE))
PRIORITY_CLASSES = Printer(
    (
        NAME,
        integer("Value", ".value"),
        boolean("Global-Default", ".globalDefault"),
        AGE,
        wide("PreemptionPolicy", ".preemptionPolicy"),
    )
)


def _event(read: Read) -> Read:
    """Hand an event to `read` in its core form."""
    return lambda raw, now: read(CORE_EVENTS_VIEW.outward(raw) if "regarding" in raw else raw, now)


def _first_seen(raw: Raw, now: float) -> str:
    ages = (since(dig(raw, field), now) for field in ("firstTimestamp", "eventTime"))
    return next((shown for shown in ages if shown != UNKNOWN), UNKNOWN)


def _last_seen(raw: Raw, now: float) -> str:
    if isinstance(dig(raw, "series"), dict):
        return since(dig(raw, "series", "lastObservedTime"), now)
    last = since(dig(raw, "lastTimestamp"), now)
    return _first_seen(raw, now) if last == UNKNOWN else last


def _involved(raw: Raw, now: float) -> str:
    about = dig(raw, "involvedObject")
    return "/".join(filter(None, (text(about, "kind").lower(), text(about, "name"))))


def _source(raw: Raw, now: float) -> str:
    component = text(raw, "source", "component") or text(raw, "reportingComponent")
    instance = text(raw, "source", "host") or text(raw, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def _times(raw: Raw, now: float) -> int:
    series = dig(raw, "series")
    return number(series, "count") if isinstance(series, dict) else number(raw, "count") or 1


EVENTS = Printer(
    (
        string("Last Seen", _event(_last_seen)),
        string("Type", ".type"),
        string("Reason", ".reason"),
        string("Object", _event(_involved)),
        wide("Subobject", _event(lambda raw, now: text(raw, "involvedObject", "fieldPath"))),
        wide("Source", _event(_source)),
        string("Message", _event(lambda raw, now: text(raw, "message").strip())),
        wide("First Seen", _event(_first_seen)),
        PrinterColumn("Count", _event(_times), "integer", priority=1),
        PrinterColumn("Name", ".metadata.name", priority=1, format="name"),
    )
)


def _data(*fields: str) -> PrinterColumn:
    return integer("Data", lambda raw, now: sum(len(mapping(raw, field)) for field in fields))


def _role(raw: Raw, now: float) -> str:
    return f"{text(raw, 'roleRef', 'kind')}/{text(raw, 'roleRef', 'name')}"


def _subjects(name: str, kind: str) -> PrinterColumn:
    def read(raw: Raw, now: float) -> str:
        found = (subject for subject in maps(raw, "subjects") if subject.get("kind") == kind)
        return ", ".join("/".join(filter(None, (text(s, "namespace"), text(s, "name")))) for s in found)

    return wide(name, read)


def _quota(raw: Raw, *, limits: bool) -> str:
    hard, used = mapping(raw, "status", "hard"), mapping(raw, "status", "used")
    names = [name for name in sorted(hard) if name.startswith("limits.") == limits]
    return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)


NAME_AND_AGE = Printer((NAME, AGE))
CONFIG_MAPS = Printer((NAME, _data("data", "binaryData"), AGE))
SECRETS = Printer((NAME, string("Type", ".type", "Opaque"), _data("data"), AGE))
ROLE_BINDINGS = Printer(
    (
        NAME,
        string("Role", _role),
        AGE,
        _subjects("Users", "User"),
        _subjects("Groups", "Group"),
        _subjects("ServiceAccounts", "ServiceAccount"),
    )
)
RESOURCE_QUOTAS = Printer(
    (
        NAME,
        string("Request", lambda raw, now: _quota(raw, limits=False)),
        string("Limit", lambda raw, now: _quota(raw, limits=True)),
        AGE,
    )
)
SCALES = Printer((NAME, integer("Desired", ".spec.replicas"), integer("Available", ".status.replicas"), AGE))
CREATED_AT = Printer(
    (
        NAME,
        PrinterColumn(
            "Created At",
            lambda raw, now: dig(raw, "metadata", "creationTimestamp"),
            "date",
            description="When it was created.",
        ),
    )
)
"""For built-in kinds without columns of their own, such as roles and CustomResourceDefinitions."""
