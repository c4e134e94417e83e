"""What selects a pod: its Services and the controller that owns it. Default constraints count by that.

Services are found by one of the labels that they select, owners by name, so thousands of either cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec

from moorage.api.errors import SelectorError
from moorage.api.pod import Pod, controller_of
from moorage.api.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS
from moorage.api.selectors import Requirement, Selector, compile_label_selector, selector_from_labels
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.framework.access import Version
from moorage.framework.handle import Handle
from moorage.framework.indexes import ObjectIndex

_REMEMBERED = 4096
Owner = ReplicationController | ReplicaSet | StatefulSet


class DefaultSelectors:
    """Pod → the selector that all its Services and its owner make together."""

    def __init__(self, handle: Handle) -> None:
        self._services = handle.object_index("spread", SERVICES, service_keys)
        self._owners: dict[tuple[str, str], ObjectIndex] = {
            (resource.api_version, resource.kind): handle.object_index("spread", resource, owner_keys)
            for resource in (REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS)
        }
        self._known: dict[Hashable, tuple[tuple[int, ...], Selector]] = {}
        """What a pod's answer depends on of the pod → versions of the rest, and the answer."""

    def of(self, pod: Pod) -> Selector:
        """An empty selector where nothing selects the pod. Remembered for pods that are alike."""
        owner, meta = controller_of(pod), pod.metadata
        owners = None if owner is None else self._owners.get((owner.api_version, owner.kind))
        key = (
            meta.namespace,
            tuple(meta.labels.items()),
            owner and (owner.api_version, owner.kind, owner.name),
        )
        versions = (self._services.version.value, owners.version.value if owners is not None else 0)
        known = self._known.get(key)
        if known is not None and known[0] == versions:
            return known[1]
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        selector = self._find(pod)
        self._known[key] = (versions, selector)
        return selector

    def _find(self, pod: Pod) -> Selector:
        labels: dict[str, str] = {}
        for service in self._services_of(pod):
            labels |= service.spec.selector
        owner = self._owner_of(pod)
        if isinstance(owner, ReplicationController):
            return selector_from_labels(labels | owner.spec.selector)
        selector = selector_from_labels(labels)
        return selector if owner is None else selector.plus(*_requirements(owner))

    def versions(self, pod: Pod) -> tuple[Version, ...]:
        """What changes when `of` may give another answer for this pod."""
        owners = self._owners_index(pod)
        return (self._services.version,) if owners is None else (self._services.version, owners.version)

    def _services_of(self, pod: Pod) -> Iterator[Service]:
        labels = pod.labels
        for label in labels.items():
            for service in self._services.at((pod.namespace, label)):
                if service.spec.selector.items() <= labels.items():
                    yield service

    def _owner_of(self, pod: Pod) -> Owner | None:
        reference, owners = controller_of(pod), self._owners_index(pod)
        if reference is None or owners is None:
            return None
        return next(iter(owners.at((pod.namespace, reference.name))), None)

    def _owners_index(self, pod: Pod) -> ObjectIndex | None:
        reference = controller_of(pod)
        return None if reference is None else self._owners.get((reference.api_version, reference.kind))


def _requirements(owner: ReplicaSet | StatefulSet) -> tuple[Requirement, ...]:
    """A bad selector of an owner counts as none, as upstream."""
    try:
        return compile_label_selector(owner.spec.selector).requirements
    except SelectorError:
        return ()


def service_keys(service: Service) -> Iterator[Hashable]:
    """One label to be found by, and all of them, so that a change is noticed."""
    selector = sorted(service.spec.selector.items())
    if selector:
        yield (service.namespace, selector[0])
        yield tuple(selector)


def owner_keys(owner: Owner) -> Iterator[Hashable]:
    """The name to be found by, and the selector, so that a change is noticed."""
    yield (owner.namespace, owner.name)
    yield msgspec.json.encode(owner.spec.selector)
