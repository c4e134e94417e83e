"""Queueing hints of VolumeBinding (KEP-4247), as in pkg/scheduler/framework/plugins/volumebinding/volume_binding.go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.pod import Pod
from moorage.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from moorage.framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
    QueueingHint,
    Registration,
)
from moorage.plugins.csi_translation import MIGRATED_PLUGINS
from moorage.plugins.volume_binding.reach import volume_limit
from moorage.plugins.volumes import own_claim

CHANGED = ActionType.ADD | ActionType.UPDATE


def registrations() -> Sequence[Registration]:
    """Register any new or changed volume, and any node whose labels changed."""
    node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    return [
        Registration(ClusterEvent(STORAGE_CLASS, CHANGED), class_changed),
        Registration(ClusterEvent(PERSISTENT_VOLUME_CLAIM, CHANGED), own_claim),
        Registration(ClusterEvent(PERSISTENT_VOLUME, CHANGED)),
        Registration(node),
        Registration(ClusterEvent(CSI_NODE, CHANGED), migration_changed),
        Registration(ClusterEvent(CSI_DRIVER, ActionType.UPDATE), capacity_ignored),
        Registration(ClusterEvent(CSI_STORAGE_CAPACITY, CHANGED), limit_grew),
    ]


def class_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a storage class is new or its allowed topologies have changed."""
    same = (
        isinstance(old, StorageClass)
        and isinstance(new, StorageClass)
        and old.allowed_topologies == new.allowed_topologies
    )
    return QueueingHint.SKIP if same else QueueingHint.QUEUE


def migration_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a CSINode is new or serves other in-tree plugins."""
    same = (
        isinstance(old, CSINode)
        and isinstance(new, CSINode)
        and old.annotations.get(MIGRATED_PLUGINS) == new.annotations.get(MIGRATED_PLUGINS)
    )
    return QueueingHint.SKIP if same else QueueingHint.QUEUE


def capacity_ignored(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the driver of an inline volume of the pod no longer requires capacity checks. As upstream, drivers of
    claims are not looked up here."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    own = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return QueueingHint.QUEUE if stopped and own else QueueingHint.SKIP


def limit_grew(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a capacity is new or admits larger volumes than before."""
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    grew = now is not None and (before is None or now > before)
    return QueueingHint.QUEUE if grew else QueueingHint.SKIP
