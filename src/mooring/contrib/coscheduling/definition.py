"""The CustomResourceDefinition of PodGroup, as `mooring manifests` prints it.

Spec and status are those of scheduler-plugins, so its definition serves as well; `status.message` is ours,
and an API server that has the other definition drops it."""

from __future__ import annotations

from typing import Any

from mooring.contrib.coscheduling.groups import PODGROUPS

_COUNT = {"type": "integer", "format": "int32"}
_AMOUNT = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

_SPEC = {
    "type": "object",
    "properties": {
        "minMember": {
            **_COUNT, "minimum": 1,
            "description": "How many pods of the group have to have a node before the first one starts.",
        },
        "minResources": {
            "type": "object",
            "additionalProperties": _AMOUNT,
            "description": "What all nodes together must have free before a pod of the group is tried.",
        },
        "scheduleTimeoutSeconds": {
            **_COUNT,
            "description": "How long a pod with a node waits for the others; the plugin's default if absent.",
        },
    },
}  # fmt: skip

_STATUS = {
    "type": "object",
    "properties": {
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
    },
}  # fmt: skip


def _column(name: str, path: str, kind: str) -> dict[str, str]:
    return {"name": name, "type": kind, "jsonPath": path}


PODGROUP_DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"{PODGROUPS.plural}.{PODGROUPS.group}",
        # Groups of the Kubernetes project want to know who agreed to a definition; this is that of the kind.
        "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"
        },
    },
    "spec": {
        "group": PODGROUPS.group,
        "scope": "Namespaced",
        "names": {
            "kind": PODGROUPS.kind,
            "listKind": f"{PODGROUPS.kind}List",
            "plural": PODGROUPS.plural,
            "singular": "podgroup",
            "shortNames": ["pg", "pgs"],
        },
        "versions": [
            {
                "name": PODGROUPS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    _column("Phase", ".status.phase", "string"),
                    _column("MinMember", ".spec.minMember", "integer"),
                    _column("Running", ".status.running", "integer"),
                    _column("Succeeded", ".status.succeeded", "integer"),
                    _column("Failed", ".status.failed", "integer"),
                    _column("Age", ".metadata.creationTimestamp", "date"),
                    _column("Waiting For", ".status.message", "string"),
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "Pods that start together, or not at all.",
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": _SPEC,
                            "status": _STATUS,
                        },
                    }
                },
            }
        ],
    },
}
