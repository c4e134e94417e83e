"""AppGroup objects: the workloads of an application, their dependencies, and the order in which they start.

Labels of a pod name its group and its workload. AppGroups are read from the namespaces in the plugin's arguments; their
members are pods of any namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.meta import Int32, Int64, Record
from moorage.api.pod import Pod
from moorage.api.resources import Resource, Unstructured, custom
from moorage.framework.handle import Handle
from moorage.framework.points import Plugin

APPGROUPS = custom("appgroup.diktyo.x-k8s.io", "v1alpha1", "appgroups", "AppGroup")
GROUP, WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"
"""Labels of pods."""
NAMESPACES = ("default",)
"""The default namespaces of AppGroups."""
UNLISTED = -1
"""The index of a workload that is missing in the order: such pods go first."""

T = TypeVar("T")


class AppWorkload(Record):
    """A workload, such as a Deployment. Its pods have the selector as the value of the label WORKLOAD."""

    selector: str = ""


class Dependency(Record):
    """A workload to be near to."""

    workload: AppWorkload = AppWorkload()
    max_network_cost: Int64 = 0


class AppMember(Record):
    workload: AppWorkload = AppWorkload()
    dependencies: tuple[Dependency, ...] = ()


class Turn(Record):
    workload: AppWorkload = AppWorkload()
    index: Int32 = 0


class GroupSpec(Record):
    workloads: tuple[AppMember, ...] = ()


class GroupStatus(Record):
    topology_order: tuple[Turn, ...] = ()


class AppGroup(Record):
    """The fields of the object that the plugins read."""

    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()

    def dependencies(self, pod: Pod) -> tuple[Dependency, ...]:
        mine = pod.labels.get(WORKLOAD, "")
        found = (member for member in self.spec.workloads if member.workload.selector == mine)
        return tuple(dependency for member in found for dependency in member.dependencies)

    def index(self, pod: Pod) -> int:
        """Return its position in the order; workloads with a lower position start first."""
        mine = pod.labels.get(WORKLOAD, "")
        turns = self.status.topology_order
        return next((turn.index for turn in turns if turn.workload.selector == mine), UNLISTED)


class AppGroups:
    """The groups of some namespaces; the first namespace has precedence. `changed` is called with the name of a group
    that was added, deleted or changed."""

    def __init__(self, namespaces: Sequence[str], handle: Handle, changed: Callable[[str], object]) -> None:
        self._namespaces = namespaces
        self._changed = changed
        self._groups: dict[tuple[str, str], AppGroup] = {}
        handle.on_change(APPGROUPS, self._update)

    def _update(self, old: Unstructured | None, new: Unstructured | None) -> None:
        obj = new or old
        if obj is None or obj.namespace not in self._namespaces:
            return
        key = (obj.namespace, obj.name)
        before = self._groups.pop(key, None)
        try:
            if new is not None:
                self._groups[key] = read(new, AppGroup)
        finally:
            if self._groups.get(key) != before:
                self._changed(obj.name)

    def named(self, name: str) -> AppGroup | None:
        found = (self._groups.get((namespace, name)) for namespace in self._namespaces)
        return next((group for group in found if group is not None), None)

    def of(self, pod: Pod) -> AppGroup | None:
        """Return the group of a pod; None if the pod has no group or the group does not exist."""
        name = pod.labels.get(GROUP)
        return self.named(name) if name else None


def read(obj: Unstructured, form: type[T]) -> T:
    """Return the object as a record. An object that does not fit the schema was not validated by an API server."""
    try:
        return msgspec.convert(obj.raw, form)
    except msgspec.ValidationError as error:
        text = f"{obj.kind} {obj.key}: {error}; it does not count until the field is put right"
        raise MoorageError(text) from error


def check_served(plugin: Plugin, *kinds: Resource) -> None:
    """Raise if the API server does not serve a kind that the plugin requires."""
    for kind in kinds:
        if not plugin.handle.lister(kind).known:
            raise MoorageError(
                f"{plugin.name}: the API server does not serve {kind.plural}.{kind.group}, so the plugin has "
                "no effect: apply the definition that `moorage manifests` prints"
            )
