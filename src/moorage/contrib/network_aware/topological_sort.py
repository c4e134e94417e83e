"""TopologicalSort: try pods of one AppGroup in the order of its workloads, all others in the order of PrioritySort.
Follows pkg/networkaware/topologicalsort/topologicalsort.go of scheduler-plugins.

Priority and time decide between pods of different groups, but not within a group. So the order of three pods can be
cyclic, as in scheduler-plugins; the queue then determines which goes first."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.contrib.network_aware.app_groups import APPGROUPS, GROUP, NAMESPACES, AppGroups, check_served
from moorage.contrib.network_aware.definitions import APPGROUP
from moorage.framework.access import LISTED, Access
from moorage.framework.args import PluginArgs
from moorage.framework.events import QueuedPod
from moorage.framework.handle import Handle
from moorage.framework.points import QueueSortPlugin


class TopologicalSortArgs(PluginArgs):
    namespaces: tuple[str, ...] = NAMESPACES
    """Of AppGroups. The first that has one of a name decides."""


class TopologicalSort(QueueSortPlugin):
    name = "TopologicalSort"
    Args = TopologicalSortArgs
    needs = (Access(PODS, LISTED), Access(APPGROUPS, LISTED))
    definitions = (APPGROUP,)

    def __init__(self, args: TopologicalSortArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._members = handle.object_index("TopologicalSort.members", PODS, groups_of)
        self._groups = AppGroups(args.namespaces or NAMESPACES, handle, self._resort)

    async def run(self) -> None:
        check_served(self, APPGROUPS)

    def _resort(self, group: str) -> None:
        self.handle.resort([pod.uid for pod in self._members.at(group)])

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        group = self._groups.of(a.pod)
        if group is not None and a.pod.labels[GROUP] == b.pod.labels.get(GROUP):
            return group.index(a.pod) < group.index(b.pod)
        return (-a.pod.priority, a.timestamp) < (-b.pod.priority, b.timestamp)


def groups_of(pod: Pod) -> tuple[str, ...]:
    name = pod.labels.get(GROUP)
    return (name,) if name else ()
