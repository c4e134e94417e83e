"""Snapshots that the tests of the UI look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ZONE = "topology.kubernetes.io/zone"
GPU = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
SCRIPT = "<script>window.pwned=1</script><img src=x onerror='window.pwned=1'>"
QUOTES = "\"'`${window.pwned=1}{{constructor.constructor('window.pwned=1')()}}"
RTL = "\u202egnp.exe\u202c"
LONG = "x" * 10_000


def node(name: str, zone: str = "a", cpu: str = "4", **spec: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, ZONE: zone}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}


def pod(name: str, cpu: str = "1", node: str = "", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-02T03:04:05Z"}
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [container], **spec}}


def story() -> dict[str, Any]:
    """A node for GPUs, a cordoned one, two that are nearly full; pods that wait for several reasons."""
    web = [pod(f"web-{number}", "1500m", f"cpu-{1 + number % 2}") for number in range(4)]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    for each in web:
        each["metadata"]["ownerReferences"] = [owner]
    return {
        "nodes": [
            node("gpu-1", "a", "8", taints=[GPU]),
            node("cpu-1", "a"),
            node("cpu-2", "b"),
            node("cpu-3", "b", unschedulable=True),
        ],
        "pods": [
            *web,
            pod("train", "2"),
            pod("batch-0", "3"),
            pod("batch-1", "3"),
            pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
            pod("small", "100m"),
        ],
    }


def hostile() -> dict[str, Any]:
    """Texts that want to be more than text, wherever a cluster may have some."""
    texts = (SCRIPT, QUOTES, RTL, LONG)
    nodes = [
        {**node(f"n{number}{text[:60]}", text[:63]), "spec": {"taints": [{**GPU, "value": text}]}}
        for number, text in enumerate(texts)
    ]
    pods = [pod(f"p{number}{text}") for number, text in enumerate(texts)]
    return {"nodes": nodes, "pods": pods}


def write(folder: Path, name: str, cluster: dict[str, Any]) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(cluster))
    return str(path)
