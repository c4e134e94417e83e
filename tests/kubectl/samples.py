"""Objects of many kinds with states that tables tell of: manifests, and patches of their status."""

from __future__ import annotations

import json
from typing import Any

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "side"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def named(kind: str, name: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    meta = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return named("Pod", name, spec={"containers": [{"name": "main", "image": "web"}], **spec})


OBJECTS: list[dict[str, Any]] = [
    named("Node", "plain", spec={"unschedulable": True}),
    named(
        "Node",
        "full",
        metadata={"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/gpu": ""}},
        spec={"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
    ),
    pod("pending"),
    pod("running", nodeName="full", readinessGates=[{"conditionType": "example.io/g"}]),
    pod("crashing", nodeName="full"),
    pod("done", nodeName="full", restartPolicy="Never"),
    pod("failed", nodeName="full", restartPolicy="Never"),
    pod("evicted", nodeName="full"),
    pod("gated", schedulingGates=[{"name": "example.io/gate"}]),
    pod("starting", nodeName="full", initContainers=[{"name": "i", "image": "x"}, {"name": "j", "image": "x"}]),
    pod("sidecar", nodeName="full", initContainers=[{"name": "s", "image": "x", "restartPolicy": "Always"}]),
    named("Service", "headless", spec={"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}),
    named("Service", "outside", spec={"type": "ExternalName", "externalName": "example.com"}),
    named("ConfigMap", "settings", data={"a": "1", "b": "2"}),
    named("Secret", "secret", stringData={"a": "1"}),
    named("ServiceAccount", "robot"),
    named("ResourceQuota", "quota", spec={"hard": {"pods": "10"}}),
    named("LimitRange", "limits", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}),
    named("Endpoints", "web", subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]),
    named("PodTemplate", "template", template=TEMPLATE),
    named("ReplicationController", "rc", spec={"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE}),
    named(
        "PersistentVolume",
        "volume",
        spec={
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "hostPath": {"path": "/x"},
            "storageClassName": "slow",
        },
    ),
    named(
        "PersistentVolumeClaim",
        "claim",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "slow",
        },
    ),
    *(
        named(kind, kind.lower(), "apps/v1", spec={**more, "selector": SELECTOR, "template": TEMPLATE})
        for kind, more in (
            ("Deployment", {"replicas": 3}),
            ("ReplicaSet", {"replicas": 3}),
            ("StatefulSet", {"replicas": 3, "serviceName": "web"}),
            ("DaemonSet", {}),
        )
    ),
    named(
        "Job",
        "job",
        "batch/v1",
        spec={
            "completions": 3,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}},
        },
    ),
    named(
        "CronJob",
        "cron",
        "batch/v1",
        spec={
            "schedule": "*/5 * * * *",
            "jobTemplate": {
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}
            },
        },
    ),
    named("PodDisruptionBudget", "budget", "policy/v1", spec={"minAvailable": "50%", "selector": SELECTOR}),
    named("PriorityClass", "urgent", "scheduling.k8s.io/v1", value=1000, preemptionPolicy="Never"),
    named(
        "StorageClass",
        "slow",
        "storage.k8s.io/v1",
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        provisioner="example.io/disk",
        allowVolumeExpansion=True,
    ),
    named(
        "CSIDriver",
        "disk.example.io",
        "storage.k8s.io/v1",
        spec={"attachRequired": False, "volumeLifecycleModes": ["Persistent"]},
    ),
    named("CSINode", "full", "storage.k8s.io/v1", spec={"drivers": [{"name": "disk.example.io", "nodeID": "n"}]}),
    named("CSIStorageCapacity", "room", "storage.k8s.io/v1", storageClassName="slow", capacity="10Gi"),
    named(
        "VolumeAttachment",
        "attached",
        "storage.k8s.io/v1",
        spec={"attacher": "disk.example.io", "nodeName": "full", "source": {"persistentVolumeName": "volume"}},
    ),
    named("Lease", "lease", "coordination.k8s.io/v1", spec={"holderIdentity": "me"}),
    named(
        "Role",
        "reader",
        "rbac.authorization.k8s.io/v1",
        rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    ),
    named(
        "RoleBinding",
        "readers",
        "rbac.authorization.k8s.io/v1",
        roleRef={"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
        subjects=[
            {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
        ],
    ),
    named(
        "Ingress",
        "way",
        "networking.k8s.io/v1",
        spec={
            "rules": [
                {
                    "host": "example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "web", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        },
    ),
    named("NetworkPolicy", "closed", "networking.k8s.io/v1", spec={"podSelector": {"matchLabels": {"app": "web"}}}),
    named(
        "EndpointSlice",
        "slice",
        "discovery.k8s.io/v1",
        addressType="IPv4",
        ports=[{"name": "http", "port": 80}],
        endpoints=[{"addresses": [f"10.0.0.{n}"]} for n in range(1, 6)],
    ),
]

STARTED = {"startedAt": "2026-01-01T00:00:00Z"}
READY = {"type": "Ready", "status": "True"}


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "web", "imageID": "", "ready": False, "restartCount": 0, **fields}


def ended(code: int, reason: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


STATUSES: dict[tuple[str, str], dict[str, Any]] = {
    ("node", "full"): {
        "conditions": [{**READY, "reason": "x", "message": "y"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.0",
            "osImage": "Linux",
            "kernelVersion": "6.1",
            "architecture": "amd64",
            "containerRuntimeVersion": "c://1",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
        },
    },
    ("pod", "running"): {
        "phase": "Running",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "conditions": [READY, {"type": "example.io/g", "status": "True"}],
        "containerStatuses": [container(ready=True, state={"running": STARTED})],
    },
    ("pod", "crashing"): {
        "phase": "Running",
        "containerStatuses": [
            container(
                restartCount=4,
                state={"waiting": {"reason": "CrashLoopBackOff"}},
                lastState=ended(1, "Error"),
            )
        ],
    },
    ("pod", "done"): {"phase": "Succeeded", "containerStatuses": [container(state=ended(0, "Completed"))]},
    ("pod", "failed"): {"phase": "Failed", "containerStatuses": [container(state=ended(7, "Error"))]},
    ("pod", "evicted"): {"phase": "Failed", "reason": "Evicted", "message": "full"},
    ("pod", "starting"): {
        "phase": "Pending",
        "initContainerStatuses": [
            container("i", state=ended(0, "Completed")),
            container("j", state={"running": STARTED}),
        ],
    },
    ("pod", "sidecar"): {
        "phase": "Running",
        "initContainerStatuses": [
            container("s", ready=True, started=True, restartCount=1, state={"running": STARTED})
        ],
        "containerStatuses": [container(ready=True, state={"running": STARTED})],
    },
    ("deployment", "deployment"): {
        "replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
    },
    ("replicaset", "replicaset"): {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2},
    ("statefulset", "statefulset"): {"replicas": 3, "readyReplicas": 2},
    ("daemonset", "daemonset"): {
        "desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1, "numberMisscheduled": 0,
        "updatedNumberScheduled": 1, "numberAvailable": 1,
    },
    ("job", "job"): {"succeeded": 1, "active": 2, "startTime": "2026-01-01T00:00:00Z"},
    ("pdb", "budget"): {
        "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    },
    ("pv", "volume"): {"phase": "Available"},
    ("volumeattachment", "attached"): {"attached": True},
    ("quota", "quota"): {"hard": {"pods": "10", "limits.cpu": "4"}, "used": {"pods": "3", "limits.cpu": "1"}},
}  # fmt: skip


def manifest() -> str:
    return "\n---\n".join(json.dumps(obj) for obj in OBJECTS)


def patches() -> list[tuple[str, str, str]]:
    """Kind, name and patch of each status."""
    return [(kind, name, json.dumps({"status": status})) for (kind, name), status in STATUSES.items()]
