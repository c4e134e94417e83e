"""Which events can make room for a pod that NodeResourcesFit refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.requests import PODS, node_allocatable, pod_requests
from mooring.api.resources import Unstructured
from mooring.framework.events import QueueingHint
from mooring.plugins.node_resources_fit.filtering import refusal
from mooring.plugins.pod_demand import PodDemand, is_counted

IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Every device class can be asked for as an extended resource of this name and its own."""


def _hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def pod_gone_or_smaller(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A pod with a place, or the promise of one, has gone; or some pod needs less than before."""
    if isinstance(old, Pod) and new is None:
        return _hint(bool(old.spec.node_name or old.nominated_node_name))
    if isinstance(old, Pod) and isinstance(new, Pod):
        return _hint(new.uid == pod.uid or (new.is_assigned and _freed(pod, old, new)))
    return QueueingHint.QUEUE


def _freed(pod: Pod, old: Pod, new: Pod) -> bool:
    """Whether a resource that the pod asks for is now used less."""
    before, after = pod_requests(old), pod_requests(new)
    wanted = (name for name, amount in pod_requests(pod).items() if amount and is_counted(name))
    return any(before.get(name, 0) > after.get(name, 0) for name in wanted)


def node_has_capacity(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """The node would hold the pod if it were empty, and it is new or has grown in what the pod needs."""
    if not isinstance(new, Node):
        return QueueingHint.QUEUE
    requests = PodDemand.of(pod).filtered
    offered = node_allocatable(new)
    if refusal(requests, offered, {PODS: 0}) is not None:
        return QueueingHint.SKIP
    return _hint(not isinstance(old, Node) or _grew(requests, node_allocatable(old), offered))


def _grew(requests: tuple[tuple[str, int], ...], before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    watched = [PODS, *(name for name, _ in requests)]
    return any(after.get(name, 0) > before.get(name, 0) for name in watched)


def device_class_serves(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """A device class that came, or names another extended resource, helps the pods that ask for it."""
    if not isinstance(new, Unstructured):
        return QueueingHint.QUEUE
    named = new.get("spec", "extendedResourceName", default="")
    asked = pod_requests(pod)
    if not isinstance(old, Unstructured):
        return _hint(IMPLICIT_RESOURCE + new.name in asked or named in asked)
    return _hint(named != old.get("spec", "extendedResourceName", default="") and named in asked)
