"""NodeVolumeLimits: a node attaches at most as many volumes of each CSI driver as its CSINode allows.

Follows pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. Most nodes are far below their limits, which the number
of volumes that their pods mention already shows. Only if that upper bound is too high are volumes looked up and counted
once each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from moorage.api.storage import CSINode, VolumeAttachment
from moorage.framework.access import LISTED, Access, Dependency, Kind, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    ActionType,
    ClusterEvent,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin, VectorFilterPlugin
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Code, Status
from moorage.plugins import csi_translation as csi
from moorage.plugins.csi_volumes import BadVolume, CsiVolume, CsiVolumes, MissingClaim
from moorage.plugins.volumes import SKIP, claim_name, missing_claims, own_claim, signature

REASON = "node(s) exceed max volume count"
REASON_MISSING = "%s CSI driver is not installed on the node"
STATE = "NodeVolumeLimits"
MENTIONED = "NodeVolumeLimits.mentioned"
ATTACHED = "NodeVolumeLimits.attached"
ANY_LIMIT = "NodeVolumeLimits.any_limit"
LISTED_DRIVER = "NodeVolumeLimits.listed_driver"
UNLIMITED = 1 << 62
LOOK_CLOSELY = 1 << 31
"""More volumes than any limit: the pods of the node have some that counting cannot find."""


@dataclass(frozen=True, slots=True)
class WantedVolumes:
    """The volumes that the incoming pod would attach on nodes with a CSINode, and on nodes without."""

    volumes: set[CsiVolume]
    refusals: Mapping[bool, Status]
    """By whether there is a CSINode; no entry: nothing is wrong with the pod itself."""

    def per_driver(self) -> Counter[str]:
        return Counter(driver for driver, _ in self.volumes)


class NodeVolumeLimits(PreFilterPlugin, VectorFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "NodeVolumeLimits"
    few_signs = True
    needs = (
        Access(PERSISTENT_VOLUME_CLAIMS, LISTED),
        Access(PERSISTENT_VOLUMES, LISTED),
        Access(STORAGE_CLASSES, LISTED),
        Access(CSI_NODES, LISTED),
        Access(CSI_DRIVERS, LISTED),
        Access(VOLUME_ATTACHMENTS, LISTED),
    )

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._csi_nodes = handle.lister(CSI_NODES)
        self._drivers = handle.lister(CSI_DRIVERS)
        self._requires_drivers = handle.behaviour.requires_listed_csi_driver
        self._limit_index = handle.object_index("NodeVolumeLimits.limits", CSI_NODES, limit_keys)
        self._attachments = handle.object_index(
            "NodeVolumeLimits.attachments", VOLUME_ATTACHMENTS, lambda attachment: (attachment.spec.node_name,)
        )
        self._volumes = CsiVolumes(self._claims, handle.lister(PERSISTENT_VOLUMES), handle.lister(STORAGE_CLASSES))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        if not attaches(pod):
            return SKIP
        with_csi, bad = self._resolve(pod, True)
        without = self._resolve(pod, False)[1]
        refusals = {True: bad, False: without}
        state.write(STATE, WantedVolumes(with_csi, {key: s for key, s in refusals.items() if s is not None}))
        return None

    def _resolve(self, pod: Pod, on_csi_node: bool) -> tuple[set[CsiVolume], Status | None]:
        try:
            return self._volumes.of_pod(pod, incoming=True, on_csi_node=on_csi_node), None
        except MissingClaim as missing:
            return set(), Status.unresolvable(str(missing))
        except BadVolume as bad:
            return set(), Status.error(str(bad), cause=bad)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        wanted: WantedVolumes = state.read(STATE)
        csi_node = self._csi_nodes.get(node.name)
        refusal = wanted.refusals.get(csi_node is not None)
        if refusal is not None:
            return refusal
        if missing := self._missing_driver(wanted, csi_node):
            return Status.unschedulable(missing)
        limits = limits_of(csi_node)
        if not wanted.volumes or not limits:
            return None
        return self._count(wanted, node, limits)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        wanted: WantedVolumes = state.read(STATE)
        refusals = nodes.refusals()
        if wanted.refusals:
            present = np.array([self._csi_nodes.get(name) is not None for name in nodes.names], dtype=np.bool_)
            for on_csi_node, status in wanted.refusals.items():
                refusals.add(present == on_csi_node, status.message, status.code)
        if wanted.volumes:
            missing = self._refuse_missing(wanted, nodes, refusals)
            self._refuse_full(wanted, nodes, refusals, missing)
        return refusals

    def _required_drivers(self, wanted: WantedVolumes) -> list[str]:
        """Return the drivers of the pod's volumes that must be present on the node (KEP-5030), in order of name."""
        if not self._requires_drivers:
            return []
        found = ((name, self._drivers.get(name)) for name in sorted(wanted.per_driver()))
        return [name for name, driver in found if driver and driver.spec.prevent_pod_scheduling_if_missing]

    def _missing_driver(self, wanted: WantedVolumes, csi_node: CSINode | None) -> str:
        listed = drivers_of(csi_node)
        return next((REASON_MISSING % name for name in self._required_drivers(wanted) if name not in listed), "")

    def _refuse_missing(self, wanted: WantedVolumes, nodes: Nodes, refusals: Refusals) -> BoolArray:
        """Refuse the nodes without a required driver, each for the first one that is missing."""
        refused = np.zeros(len(nodes), dtype=np.bool_)
        for name in self._required_drivers(wanted):
            missing = ~self._has_driver(nodes, name) & ~refused
            refusals.add(missing, REASON_MISSING % name)
            refused |= missing
        return refused

    def _has_driver(self, nodes: Nodes, driver: str) -> BoolArray:
        """Return which nodes have the driver, kept until a CSINode changes."""

        def compute(some: Nodes) -> BoolArray:
            found = (driver in drivers_of(self._csi_nodes.get(name)) for name in some.names)
            return np.fromiter(found, np.bool_, len(some))

        return nodes.node_column((LISTED_DRIVER, driver, self._limit_index.version.value), compute)

    def _refuse_full(self, wanted: WantedVolumes, nodes: Nodes, refusals: Refusals, missing: BoolArray) -> None:
        """Count volumes on the nodes for which the upper bound is not sufficient."""
        full = np.zeros(len(nodes), dtype=np.bool_)
        for index in np.flatnonzero(self._in_doubt(wanted, nodes) & ~missing).tolist():
            node = nodes[index]
            status = self._count(wanted, node, limits_of(self._csi_nodes.get(node.name)))
            if status is not None and status.code is Code.ERROR:
                broken = np.zeros(len(nodes), dtype=np.bool_)
                broken[index] = True
                refusals.add(broken, status.message, Code.ERROR)
            full[index] = status is not None and status.code is not Code.ERROR
        refusals.add(full, REASON)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        yield from missing_claims(pod, self._claims)
        yield from self._over(state.read(STATE), node, limits_of(self._csi_nodes.get(node.name)))

    def _in_doubt(self, wanted: WantedVolumes, nodes: Nodes) -> BoolArray:
        """Return the nodes whose pods and attachments mention enough volumes to reach a limit."""
        mentioned = nodes.row_column(MENTIONED, mentioned_volumes, mentioned_by_pods)
        bound = mentioned + self._attached(nodes)
        # A volume that cannot be counted fails the attempt, whichever driver the node limits.
        doubt = (mentioned >= LOOK_CLOSELY) & self._has_limits(nodes)
        for driver, count in wanted.per_driver().items():
            doubt |= bound + count > self._limits(nodes, driver)
        return doubt

    def _limits(self, nodes: Nodes, driver: str) -> IntArray:
        """Return the driver's limit on each node, kept until a CSINode changes."""

        def compute(some: Nodes) -> IntArray:
            found = (limits_of(self._csi_nodes.get(name)).get(driver, UNLIMITED) for name in some.names)
            return np.fromiter(found, np.int64, len(some))

        return nodes.node_column((STATE, driver, self._limit_index.version.value), compute)

    def _has_limits(self, nodes: Nodes) -> BoolArray:
        """Return which nodes limit any driver, kept until a CSINode changes."""

        def compute(some: Nodes) -> BoolArray:
            return np.fromiter((bool(limits_of(self._csi_nodes.get(name))) for name in some.names), np.bool_, len(some))

        return nodes.node_column((ANY_LIMIT, self._limit_index.version.value), compute)

    def _attached(self, nodes: Nodes) -> IntArray:
        """Return the number of attachments of each node, kept until one is added or removed."""

        def compute(some: Nodes) -> IntArray:
            found = (sum(1 for _ in self._attachments.at(name)) for name in some.names)
            return np.fromiter(found, np.int64, len(some))

        return nodes.node_column((ATTACHED, self._attachments.version.value), compute)

    def _count(self, wanted: WantedVolumes, node: NodeView, limits: Mapping[str, int]) -> Status | None:
        try:
            return Status.unschedulable(REASON) if any(self._over(wanted, node, limits)) else None
        except BadVolume as bad:
            return Status.error(str(bad), cause=bad)

    def _over(self, wanted: WantedVolumes, node: NodeView, limits: Mapping[str, int]) -> Iterator[Detail]:
        """Return the drivers whose limit would be exceeded. A volume counts once, even if pods of the node, attachments
        and the incoming pod all use it."""
        used = {volume for pod in node.pods for volume in self._of_running(pod)}
        resolved = map(self._volumes.of_attachment, self._attachments.at(node.name))
        attached = {volume for volume in resolved if volume is not None}
        new = Counter(driver for driver, _ in wanted.volumes - used)
        held = Counter(driver for driver, _ in used | attached)
        for driver, count in new.items():
            free = limits.get(driver, UNLIMITED) - held[driver]
            if count > free:
                yield Detail(f"volumes of {driver}", asked=count, there=free, missing=count - free)

    def _of_running(self, pod: Pod) -> set[CsiVolume]:
        if not pod.spec.volumes:
            return set()
        return self._volumes.of_pod(pod, incoming=False, on_csi_node=True)

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(CSI_NODE, ActionType.ADD)),
            Registration(ClusterEvent(CSI_NODE, ActionType.UPDATE), limit_grew),
            Registration(ClusterEvent(POD, ActionType.DELETE), detached),
            Registration(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), own_claim),
            Registration(ClusterEvent(VOLUME_ATTACHMENT, ActionType.DELETE), attachment_gone),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return signature(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.ROW, *(Kind(need.resource) for need in self.needs)) if attaches(pod) else ()


def attaches(pod: Pod) -> bool:
    """Return whether the pod has a volume that a driver may have to attach."""
    return any(
        claim_name(pod, volume) is not None or csi.plugin_of_inline(volume) is not None for volume in pod.spec.volumes
    )


def limits_of(csi_node: CSINode | None) -> Mapping[str, int]:
    """Return the volume limit by driver, without drivers that have no limit."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def limit_keys(csi_node: CSINode) -> tuple[Hashable, ...]:
    """Return everything that is read of a CSINode, so that any change to it changes the version of the index."""
    return (csi_node.name, *drivers_of(csi_node), *limits_of(csi_node).items())


def drivers_of(csi_node: CSINode | None) -> frozenset[str]:
    """Return the names of the drivers that the node has."""
    return frozenset(() if csi_node is None else (driver.name for driver in csi_node.spec.drivers))


def mentioned_volumes(nodes: Nodes) -> IntArray:
    return np.array([mentioned_by_pods(node) for node in nodes], dtype=np.int64)


def mentioned_by_pods(node: NodeView) -> int:
    """Return an upper bound of the volumes that the node's pods attach; `LOOK_CLOSELY` if one may be invalid."""
    return sum(_mentioned(pod) for pod in node.pods if pod.spec.volumes)


def _mentioned(pod: Pod) -> int:
    count = 0
    for volume in pod.spec.volumes:
        name, plugin = claim_name(pod, volume), csi.plugin_of_inline(volume)
        if name == "" or volume.ephemeral is not None or (plugin is not None and plugin.migrated):
            return LOOK_CLOSELY
        count += name is not None
    return count


def limit_grew(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a driver can attach more volumes than before."""
    before, now = limits_of(old), limits_of(new)
    grew = any(count > before.get(driver, 0) for driver, count in now.items())
    return QueueingHint.QUEUE if grew else QueueingHint.SKIP


def detached(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a pod with volumes was deleted from a node, or is no longer nominated to one."""
    return QueueingHint.QUEUE if isinstance(old, Pod) and attaches(old) else QueueingHint.SKIP


def attachment_gone(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a volume was detached and the pod has claims, or a disk of the same driver."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        plugin = csi.plugin_of_inline(volume)
        if plugin is not None and isinstance(old, VolumeAttachment) and old.spec.attacher == plugin.driver:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
