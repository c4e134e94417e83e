"""The fields of a real node that a scheduler does not read.

They determine how much is sent to an extender that wants whole nodes.
"""

from __future__ import annotations

from typing import Any

from moorage.api.node import REGION

IMAGES = 8
CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}
"""Type → status, reason and message."""


def add_details(node: dict[str, Any]) -> None:
    """Add these fields to a node of a `BenchWorld`."""
    meta, status = node["metadata"], node["status"]
    name = meta["name"]
    meta["labels"] |= {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "beta.kubernetes.io/instance-type": "m5.4xlarge",
        REGION: "region-1",
        "failure-domain.beta.kubernetes.io/region": "region-1",
        "node.example.com/pool": "general-purpose",
        "node.example.com/capacity-type": "on-demand",
    }
    meta["annotations"] = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "csi.volume.kubernetes.io/nodeid": f'{{"disk.csi.example.com":"{name}"}}',
    }
    meta |= {"resourceVersion": "81234567", "creationTimestamp": "2026-01-01T00:00:00Z"}
    node["spec"] |= {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": f"example:///{name}"}
    status["conditions"] = [
        {
            "type": kind,
            "status": value,
            "lastHeartbeatTime": "2026-01-01T12:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": reason,
            "message": message,
        }
        for kind, (value, reason, message) in CONDITIONS.items()
    ]
    status["addresses"] = [
        {"type": "InternalIP", "address": "10.1.2.3"},
        {"type": "InternalDNS", "address": f"{name}.region-1.compute.example.com"},
        {"type": "Hostname", "address": name},
    ]
    status["nodeInfo"] = {
        "machineID": "ec2d9dc3f5d7a6c1b4fa1f2e3d4c5b6a",
        "systemUUID": "ec2d9dc3-f5d7-a6c1-b4fa-1f2e3d4c5b6a",
        "bootID": "0d6f3b8e-8f7c-4c2b-9d52-6f0d3a4b5c6d",
        "kernelVersion": "6.1.115-126.197",
        "osImage": "Example Linux 2026",
        "containerRuntimeVersion": "containerd://2.0.4",
        "kubeletVersion": "v1.36.4",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
    status["images"] = [
        {
            "names": [
                f"registry.example.com/team-{i}/service-{i}@sha256:{i:064x}",
                f"registry.example.com/team-{i}/service-{i}:v1.{i}.0",
            ],
            "sizeBytes": 120_000_000 + i,
        }
        for i in range(IMAGES)
    ]
