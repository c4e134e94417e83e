"""The API of Coscheduling: its arguments, and the CustomResourceDefinition of PodGroup.

Spec and status of a PodGroup are those of scheduler-plugins, so its definition works too. `status.message` is an
addition, which an API server with the upstream definition drops."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from moorage.api.meta import Int64
from moorage.api.problems import Problem, child, invalid
from moorage.contrib.coscheduling.groups import PODGROUPS
from moorage.contrib.definitions import amounts, definition
from moorage.framework.args import ArgsContext, PluginArgs

DEFAULT_WAIT = 60


class CoschedulingArgs(PluginArgs):
    """How long members wait, and how a failed group backs off."""

    permit_waiting_time_seconds: Int64 = DEFAULT_WAIT
    """Where the PodGroup has no scheduleTimeoutSeconds."""
    pod_group_backoff_seconds: Int64 = 0
    """For which a failed group is refused; 0: not at all."""
    pod_group_reject_percentage: Int64 = 10
    """A group of which at most this share has no node is not rejected for one more member without."""
    denied_pg_expiration_time_seconds: Int64 = field(default=0, name="deniedPGExpirationTimeSeconds")
    """What podGroupBackoffSeconds was called in old releases; counts where that one is 0."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        for name, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
            ("deniedPGExpirationTimeSeconds", self.denied_pg_expiration_time_seconds),
        ):
            if value < 0:
                yield invalid(child(path, name), value, "must be zero or positive")
        if not 0 <= self.pod_group_reject_percentage <= 100:
            where, value = child(path, "podGroupRejectPercentage"), self.pod_group_reject_percentage
            yield invalid(where, value, "must be from 0 to 100")


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
