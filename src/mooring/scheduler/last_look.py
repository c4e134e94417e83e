"""The last look at a node before a pod is bound to it.

Permit and PreBind may take minutes, and the API server looks neither whether the node still exists nor
whether it is cordoned. What else has changed is left to the kubelet, which judges a pod before it starts it.
"""

from __future__ import annotations

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.resources import NODES
from mooring.api.taints import NO_SCHEDULE, TAINT_UNSCHEDULABLE, Taint, tolerates
from mooring.runtime.profile import Profile

CORDON = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)
HEEDS_CORDONS = "NodeUnschedulable"
"""A profile without this plugin places pods on cordoned nodes on purpose."""


def objection(profile: Profile, pod: Pod, name: str) -> str:
    """Why the pod must not be bound to the node any more; empty when it may."""
    node = profile.services.lister(NODES).get(name)
    if not isinstance(node, Node):
        return f'node "{name}" is gone'
    if not node.spec.unschedulable or HEEDS_CORDONS not in profile.plugins:
        return ""
    if any(tolerates(toleration, CORDON) for toleration in pod.spec.tolerations):
        return ""
    return f'node "{name}" was cordoned before the pod was bound'
