"""The CustomResourceDefinition of PodGroup.

Spec and status are those of scheduler-plugins, so its definition serves as well; `status.message` is ours,
and an API server that has the other definition drops it."""

from __future__ import annotations

from moorage.contrib.coscheduling.groups import PODGROUPS
from moorage.contrib.definitions import amounts, definition

_COUNT = {"type": "integer", "format": "int32"}
_SPEC = {
    "minMember": {
        **_COUNT, "minimum": 1,
        "description": "How many pods of the group have to have a node before the first one starts.",
    },
    "minResources": amounts("What all nodes together must have free before a pod of the group is tried."),
    "scheduleTimeoutSeconds": {
        **_COUNT,
        "description": "How long a pod with a node waits for the others; the plugin's default if absent.",
    },
}  # fmt: skip
_STATUS = {
    "phase": {
        "type": "string", "description": "Pending, Scheduling, Running, Finished, Failed or Unknown.",
    },
    "message": {"type": "string", "description": "What the group waits for."},
    "occupiedBy": {"type": "string", "description": "Owners of the pods, namespace/name."},
    "running": {**_COUNT, "description": "Pods that run."},
    "succeeded": {**_COUNT, "description": "Pods that have succeeded."},
    "failed": {**_COUNT, "description": "Pods that have failed."},
    "scheduleStartTime": {
        "type": "string", "format": "date-time", "description": "When there were enough pods.",
    },
}  # fmt: skip

PODGROUP_DEFINITION = definition(
    PODGROUPS,
    "Pods that start together, or not at all.",
    short_names=("pg", "pgs"),
    approval=50,
    columns=(
        ("Phase", ".status.phase", "string"),
        ("MinMember", ".spec.minMember", "integer"),
        ("Running", ".status.running", "integer"),
        ("Succeeded", ".status.succeeded", "integer"),
        ("Failed", ".status.failed", "integer"),
        ("Age", ".metadata.creationTimestamp", "date"),
        ("Waiting For", ".status.message", "string"),
    ),
    spec=_SPEC,
    status=_STATUS,
)
