"""Objects of the tests as plain JSON."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def meta(name: str, labels: dict[str, str] | None = None, **more: Any) -> Json:
    return {"name": name, **({"labels": labels} if labels else {}), **more}


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: dict[str, str] | None = None,
    taints: list[Json] | None = None,
    unschedulable: bool = False,
    images: list[Json] | None = None,
    extended: dict[str, str] | None = None,
) -> Json:
    """A ready node, as a kubelet would report it."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extended or {})}
    spec: Json = {"taints": taints} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta(name, {"kubernetes.io/hostname": name, **(labels or {})}),
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "stand-in"}],
            "images": images or [],
        },
    }


def pod(
    name: str,
    *,
    scheduler: str = "default-scheduler",
    cpu: str = "100m",
    memory: str = "128Mi",
    labels: dict[str, str] | None = None,
    image: str = "registry.example/app:1",
    requests: dict[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A pod with one container; further keys go into its spec as they are."""
    wanted = {"cpu": cpu, "memory": memory} if requests is None else requests
    extended = {key: value for key, value in wanted.items() if "/" in key}
    resources: Json = {"requests": wanted} | ({"limits": extended} if extended else {})
    container: Json = {"name": "main", "image": image, "resources": resources}
    for key in ("ports", "volumeMounts"):
        if key in spec:
            container[key] = spec.pop(key)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(name, labels),
        "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def deployment(name: str, replicas: int, *, scheduler: str, cpu: str = "100m") -> Json:
    template = pod(name, scheduler=scheduler, cpu=cpu, labels={"app": name})
    template["spec"].pop("terminationGracePeriodSeconds")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(name),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
        },
    }


def priority_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta(name),
        "value": value,
        "preemptionPolicy": policy,
    }


def budget(name: str, labels: dict[str, str], **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta(name),
        "spec": {"selector": {"matchLabels": labels}, **spec},
    }


def storage_class(
    name: str, provisioner: str = "kubernetes.io/no-provisioner", mode: str = "WaitForFirstConsumer"
) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta(name),
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def volume(name: str, node_name: str, storage_class_name: str, size: str = "10Gi") -> Json:
    """A local volume on one node."""
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta(name),
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class_name,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/mnt/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
        },
    }


def claim(name: str, storage_class_name: str, size: str = "5Gi", mode: str = "ReadWriteOnce") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta(name),
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage_class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def uses_claim(*names: str) -> list[Json]:
    """`volumes` of a pod."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def service(name: str, selector: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(name),
        "spec": {"selector": selector, "ports": [{"port": 80}]},
    }


def namespace(name: str, labels: dict[str, str] | None = None) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(name, labels)}


def scheduler_config(*profiles: Json, **fields: Any) -> Json:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles) or [{"schedulerName": "default-scheduler"}],
        **fields,
    }
