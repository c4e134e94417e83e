"""TenantIsolation: run pods of a tenant on nodes of its own pool or of the shared one, and optionally not beside pods
of another tenant.

A label of the namespace names the tenant; a label of the node names the tenant that owns its pool."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, required
from moorage.api.resources import NAMESPACES
from moorage.framework.access import LISTED, Access, Dependency, Reads, Version
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import NO_LABEL, Detail, ExplainingPlugin, ReusablePlugin, a_few
from moorage.framework.status import Code

TENANTS = EventResource("TenantIsolation")
OTHER_POOL = "node(s) were not in the pool of the tenant"
OCCUPIED = "node(s) ran pods of another tenant"
EMPTY, SEVERAL = 0, -1
"""What a node is taken for that runs pods of no tenant, or of several."""


class TenantIsolationArgs(PluginArgs):
    """The labels, and how strict the isolation is."""

    namespace_label: str = ""
    """Of namespaces: its value is the tenant. Namespaces without it belong to no tenant."""
    node_label: str = ""
    """Of nodes: its value is the tenant whose pool the node is in; as `namespaceLabel` unless given."""
    shared_pool: str = ""
    """The value of `nodeLabel` on nodes that are there for all; empty: nodes without the label are."""
    exclusive_nodes: bool = False
    """Whether pods of different tenants must not share a node, in the shared pool either."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if not self.namespace_label:
            yield required(child(path, "namespaceLabel"), "the label of namespaces that names their tenant")


class TenantIsolation(WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "TenantIsolation"
    Args = TenantIsolationArgs
    needs = (Access(NAMESPACES, LISTED),)
    few_signs = True

    def __init__(self, args: TenantIsolationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._node_label = args.node_label or args.namespace_label
        self._tenants: dict[str, str] = {}
        """Namespace → tenant."""
        self._numbers: dict[str, int] = {}
        """Tenant → a number above 0."""
        self._version = Version()
        handle.on_change(NAMESPACES, self._namespace_changed)

    def _namespace_changed(self, old: Any, new: Any) -> None:
        name, tenant = (new or old).name, new.labels.get(self.args.namespace_label, "") if new else ""
        before = self._tenants.pop(name, "")
        if tenant:
            self._tenants[name] = tenant
        if tenant != before:
            self._version.bump()
            if old is not None:
                self.handle.wake(TENANTS)

    def tenant_of(self, pod: Pod) -> str:
        """Return the tenant of the pod; empty if it has none."""
        return self._tenants.get(pod.namespace, "")

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        tenant, label, shared = self.tenant_of(pod), self._node_label, self.args.shared_pool
        mine = nodes.label_equals(label, *filter(None, (tenant, shared)))
        if not shared:
            mine |= ~nodes.has_label(label)
        answer = nodes.refuse(~mine, OTHER_POOL, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        if tenant and self.args.exclusive_nodes:
            key = (self, self._version.value)
            occupants = nodes.row_column(key, self._occupants, self._occupant)
            answer.add((occupants != EMPTY) & (occupants != self._number(tenant)), OCCUPIED)
        return answer

    def _occupants(self, nodes: Nodes) -> IntArray:
        return np.array([self._occupant(node) for node in nodes], dtype=np.int64)

    def _occupant(self, node: NodeView) -> int:
        tenants = {*map(self.tenant_of, node.pods)} - {""}
        return self._number(tenants.pop()) if len(tenants) == 1 else SEVERAL if tenants else EMPTY

    def _number(self, tenant: str) -> int:
        return self._numbers.setdefault(tenant, len(self._numbers) + 1)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        tenant, label = self.tenant_of(pod), self._node_label
        if not self._admits(node.labels, pod):
            pools = " or ".join(filter(None, (tenant, self.args.shared_pool or NO_LABEL)))
            yield Detail(f"label {label}", asked=pools, there=node.labels.get(label, NO_LABEL))
        if tenant and self.args.exclusive_nodes:
            others = [other for other in node.pods if self.tenant_of(other) not in ("", tenant)]
            if number := len(others):
                subject = "pods of other tenants"
                yield Detail(subject, asked=0, there=number, missing=number, pods=a_few(others))

    def events_to_register(self) -> Sequence[Registration]:
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        found = [Registration(nodes, self._after_node_change), Registration(ClusterEvent(TENANTS, ActionType.UPDATE))]
        if self.args.exclusive_nodes:
            found.append(Registration(ASSIGNED_POD_DELETE, self._after_pod_delete))
        return found

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        came = self._admits(new.labels, pod) and (old is None or not self._admits(old.labels, pod))
        return QueueingHint.QUEUE if came else QueueingHint.SKIP

    def _admits(self, labels: Mapping[str, str], pod: Pod) -> bool:
        pool = labels.get(self._node_label)
        shared = pool == (self.args.shared_pool or None)
        return shared or (bool(pool) and pool == self.tenant_of(pod))

    def _after_pod_delete(self, pod: Pod, old: Pod, new: Any) -> QueueingHint:
        other = self.tenant_of(old)
        return QueueingHint.QUEUE if other and other != self.tenant_of(pod) else QueueingHint.SKIP

    def sign(self, pod: Pod) -> Hashable:
        # Not the tenant: the namespace may get another one while pods of it wait.
        return pod.namespace

    def reads(self, pod: Pod) -> Collection[Dependency]:
        exclusive = self.args.exclusive_nodes and bool(self.tenant_of(pod))
        return (Reads.NODE, Reads.ROW, self._version) if exclusive else (Reads.NODE, self._version)
