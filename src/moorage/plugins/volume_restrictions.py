"""VolumeRestrictions: disks that only one pod of a node may mount, and ReadWriteOncePod claims.

Follows pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moorage.api.pod import Pod, Volume
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS
from moorage.framework.access import LISTED, Access, Dependency, Kind, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    ActionType,
    ClusterEvent,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin, a_few
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Status
from moorage.plugins.volumes import SKIP, claim_not_found, missing_claims, named_claims, own_named_claim, signature

REASON_DISK = "node(s) had no available disk"
REASON_SINGLE_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
STATE = "VolumeRestrictions"

Disk = tuple[str, Hashable, bool]
"""Kind, identity, and whether it is mounted read-only. EBS disks clash either way and count as written."""


@dataclass(slots=True)
class SingleUse:
    """The ReadWriteOncePod claims of the incoming pod, and how many uses by other pods conflict with them.

    Every claim in use counts once at first; the changes of a dry run then count single references."""

    claims: frozenset[str]
    uses: int

    def clone(self) -> SingleUse:
        return SingleUse(self.claims, self.uses)


class VolumeRestrictions(PreFilterPlugin, WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "VolumeRestrictions"
    few_signs = True
    needs = (Access(PERSISTENT_VOLUME_CLAIMS, LISTED),)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._users = handle.pod_index("VolumeRestrictions.claims", claim_keys)
        self._disks = handle.pod_index("VolumeRestrictions.disks", index_keys)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        if not pod.spec.volumes:
            return SKIP
        single: set[str] = set()
        for name in named_claims(pod):
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                return Status.unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                single.add(name)
        uses = sum(self._is_used(pod.namespace, name, nodes) for name in single)
        if not uses and not any(can_clash(volume) for volume in pod.spec.volumes):
            return SKIP
        state.write(STATE, SingleUse(frozenset(single), uses))
        return None

    def _is_used(self, namespace: str, claim: str, nodes: Nodes) -> bool:
        """Return whether a pod on an existing node uses the claim."""
        names = nodes.columns.node_names()
        return any(names[row] for row in self._users.rows((namespace, claim)))

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        state.own(STATE).uses += references(state.read(STATE), added)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        state.own(STATE).uses -= references(state.read(STATE), removed)
        return None

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        return references(state.read(STATE), other) > 0

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Check the node's pods one by one: in a dry run they differ from those in the index."""
        if any(clash(pod, other) for other in node.pods):
            return Status.unschedulable(REASON_DISK)
        return Status.unschedulable(REASON_SINGLE_USE) if state.read(STATE).uses > 0 else None

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        if nodes.columns is self.handle.nodes.columns:
            rows = {row for key in rivals(pod) for row in self._disks.rows(key)}
            taken = np.isin(nodes.table_rows, list(rows))
        else:  # a dry run, which the index does not see
            taken = np.array([any(clash(pod, other) for other in node.pods) for node in nodes], dtype=np.bool_)
        refusals = nodes.refuse(taken, REASON_DISK)
        return refusals.add(~taken, REASON_SINGLE_USE) if state.read(STATE).uses > 0 else refusals

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        yield from missing_claims(pod, self._claims)
        holders: dict[str, list[Pod]] = {}
        for other in node.pods:
            for text in {disk_text(disk) for disk in {*rivals(pod)}.intersection(index_keys(other))}:
                holders.setdefault(text, []).append(other)
        yield from (Detail(f"disk {text}", pods=a_few(found)) for text, found in sorted(holders.items()))
        single: SingleUse | None = state.read(STATE, None)
        for name in sorted(single.claims) if single is not None else ():
            if users := a_few(self._users_of(pod.namespace, name)):
                yield Detail(f"claim {pod.namespace}/{name} with {READ_WRITE_ONCE_POD}", pods=users)

    def _users_of(self, namespace: str, claim: str) -> Iterator[Pod]:
        """Return the pods that use the claim on existing nodes."""
        columns = self.handle.nodes.columns
        names = columns.node_names()
        for row in self._users.rows((namespace, claim)):
            for other in columns.view(row).pods if names[row] else ():
                if (namespace, claim) in claim_keys(other):
                    yield other

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(POD, ActionType.DELETE), released),
            Registration(ClusterEvent(NODE, ActionType.ADD)),
            Registration(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), own_named_claim),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return signature(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.ROW, Reads.PODS, Kind(PERSISTENT_VOLUME_CLAIMS)) if signature(pod) else ()


def claim_keys(pod: Pod) -> Collection[Hashable]:
    return () if not pod.spec.volumes else {(pod.namespace, name) for name in named_claims(pod)}


def references(single: SingleUse, other: Pod) -> int:
    """Return how often another pod mounts one of the claims. As upstream, only names are compared, so a claim of the
    same name in another namespace counts as well."""
    return sum(name in single.claims for name in named_claims(other))


def index_keys(pod: Pod) -> Collection[Hashable]:
    return disk_keys(pod) if pod.spec.volumes else ()


def disk_keys(pod: Pod) -> set[Disk]:
    return {disk for volume in pod.spec.volumes for disk in disks(volume)}


def disks(volume: Volume) -> Iterator[Disk]:
    """Yield the disk of a volume. Two Ceph images are the same if they share a monitor, so an image appears once per
    monitor."""
    if (gce := volume.gce_persistent_disk) is not None:
        yield ("gce", gce.pd_name, gce.read_only)
    if (ebs := volume.aws_elastic_block_store) is not None:
        yield ("ebs", ebs.volume_id, False)
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn, iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        for monitor in rbd.monitors:
            yield ("rbd", (monitor, rbd.pool, rbd.image), rbd.read_only)


def disk_text(disk: Disk) -> str:
    """Return `gce name`; for a Ceph image its pool and image."""
    kind, name, _ = disk
    return f"{kind} {'/'.join(name[1:]) if isinstance(name, tuple) else name}"


def can_clash(volume: Volume) -> bool:
    sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(source is not None for source in sources)


def rivals(pod: Pod) -> Iterator[Disk]:
    """Return the disks that conflict with those of the pod: the same disks, unless both pods mount them read-only."""
    for kind, disk, read_only in disk_keys(pod):
        yield (kind, disk, False)
        if not read_only:
            yield (kind, disk, True)


def clash(pod: Pod, other: Pod) -> bool:
    """Return whether both pods mount a disk that cannot be shared."""
    return bool(other.spec.volumes) and not disk_keys(other).isdisjoint(rivals(pod))


def released(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a deleted pod of the same namespace used a disk or a claim of this pod."""
    if not isinstance(old, Pod) or old.namespace != pod.namespace:
        return QueueingHint.SKIP
    shared = not set(named_claims(pod)).isdisjoint(named_claims(old))
    return QueueingHint.QUEUE if shared or clash(pod, old) else QueueingHint.SKIP
