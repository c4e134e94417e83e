"""Pods and nodes in one line, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node, NodeSpec, NodeStatus
from moorage.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from moorage.api.quantity import Quantity
from moorage.api.taints import Taint

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def make_pod(
    name: str = "p",
    *,
    uid: str = "",
    node: str = "",
    phase: str = "",
    labels: Mapping[str, str] | None = None,
    **requests: Quantity,
) -> Pod:
    """A pod with one container; `gpu` stands for nvidia.com/gpu. The UID is the name unless given."""
    amounts = {"nvidia.com/gpu" if key == "gpu" else key: amount for key, amount in requests.items()}
    container = Container(name="c", resources=ResourceRequirements(requests=amounts))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=uid or name, labels=dict(labels or {})),
        spec=PodSpec(node_name=node, containers=(container,)),
        status=PodStatus(phase=phase),
    )


def make_node(
    name: str = "n",
    *,
    uid: str = "",
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    **allocatable: Quantity,
) -> Node:
    """A node of 4 cpu, 8Gi and 10 pods unless said otherwise."""
    all_labels = dict(labels or {})
    if zone is not None:
        all_labels[ZONE] = zone
    amounts: dict[str, Quantity] = {"cpu": "4", "memory": "8Gi", "pods": 10}
    amounts |= {"nvidia.com/gpu" if key == "gpu" else key: amount for key, amount in allocatable.items()}
    return Node(
        metadata=ObjectMeta(name=name, uid=uid or name, labels=all_labels),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(allocatable=amounts),
    )
