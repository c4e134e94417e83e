"""Many nodes in a dry run at once, each without some of its pods.

Each node is a world of its own, but few plugins notice. A filter that does not read the row, or reads
nothing but sums there (`slack`), is asked about all nodes in one call, on rows that lack their victims.
Others read the pods of a node from its view, so they are asked about one node at a time. So are those that
follow other pods through AddPod and RemovePod where a victim concerns them: only then the node gets a cycle
state of its own. Plugins stay in their configured order, so the first one that refuses a node is the one
that is told.

Putting victims back asks only the filters that can change their mind: those that read the row, and those that
follow other pods if this one concerns them. Filters that hold sums against a limit are not asked at all: they
have said how much room they see (`slack`), and the rest is subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.access import PODS, ROW
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import writes
from mooring.framework.nodes import BoolArray, Nodes
from mooring.framework.points import FilterPlugin, PreFilterPlugin
from mooring.framework.ranking import PodTail
from mooring.framework.status import SUCCESS, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.filtering import filter_by, filter_dense, run_add_pod, run_remove_pod
from mooring.runtime.profile import Profile
from mooring.runtime.slack import Room, Slack, slack_of


class Plan:
    """Which plugins have a say about one pod, by what their answers depend on."""

    def __init__(self, profile: Profile, pod: Pod, state: CycleState) -> None:
        self.profile, self.pod, self.state = profile, pod, state
        skipped = state.skip_filter
        self.filters = [plugin for plugin in profile.filter if plugin.name not in skipped]
        self.followers = [p for p in profile.pre_filter if p.name not in skipped and _follows(p)]
        """Told of every pod that comes and goes, unless it does not concern them."""
        reads = {plugin.name: plugin.reads(pod) for plugin in self.filters}
        followers = {plugin.name for plugin in self.followers}
        unknown = {name for name, read in reads.items() if read is None}
        self.worldly = {n for n, read in reads.items() if read is None or PODS in read or n in followers}
        """Filters whose answers change with the cycle state."""
        self.by_row = {n for n, read in reads.items() if n in unknown or (read is not None and ROW in read)}
        """Filters whose answers change with the row."""
        self.by_sums = {p.name for p in self.filters if p.name not in self.worldly and writes(p, "slack")}
        """Filters that read nothing of the row but sums of requests."""

    def concerned(self, other: Pod) -> bool:
        """Whether some plugin has to be told that `other` comes or goes."""
        return any(plugin.concerns(self.state, self.pod, other) for plugin in self.followers)


def _follows(plugin: PreFilterPlugin) -> bool:
    return writes(plugin, "add_pod") or writes(plugin, "remove_pod")


class Clearings:
    """The nodes of one dry run; what only some of them need is computed when it is asked for."""

    def __init__(self, plan: Plan, names: Sequence[str], victims: Sequence[Sequence[Pod]]) -> None:
        self.plan = plan
        self.names = names
        self.rows = plan.profile.services.what_if_rows(names)
        self.tails: list[PodTail] = [self.rows.hide(row, pods) for row, pods in enumerate(victims)]
        self._told: dict[int, frozenset[str]] = {}
        self._states: dict[int, CycleState] = {}
        nodes = self.rows.nodes()
        self.statuses = NodeStatuses(nodes)
        self.fitting = self._filter(nodes)

    def __len__(self) -> int:
        return len(self.names)

    def told(self, row: int) -> frozenset[str]:
        """UIDs of the victims that concern a plugin beyond their own row."""
        if not self.plan.followers:
            return frozenset()
        found = self._told.get(row)
        if found is None:
            concerned = self.plan.concerned
            found = frozenset(pod.metadata.uid for pod in self.tails[row] if concerned(pod))
            self._told[row] = found
        return found

    def state(self, row: int) -> tuple[CycleState, Status]:
        """The cycle state of that node's world, without its victims."""
        told = self.told(row)
        if not told:
            return self.plan.state, SUCCESS
        state = self._states.get(row)
        if state is not None:
            return state, SUCCESS
        state = self._states[row] = self.plan.state.clone()
        view = self.rows.view(row)
        for pod in self.tails[row]:
            if pod.metadata.uid in told:
                status = run_remove_pod(self.plan.profile, state, self.plan.pod, pod, view)
                if not status.is_success:
                    return state, status
        return state, SUCCESS

    def status(self, row: int) -> Status:
        return self.statuses.verdicts[int(self.statuses.ids[row])]

    @cached_property
    def slack(self) -> dict[str, Slack]:
        """Filters that need not be asked when pods come back, with the room that they see on each row."""
        wanted = [plugin for plugin in self.plan.filters if plugin.name in self.plan.by_sums]
        return slack_of(wanted, self.plan.state, self.plan.pod, self.fitting)

    @cached_property
    def asked_by_row(self) -> list[FilterPlugin]:
        """Filters to ask again whenever the row changes."""
        return [p for p in self.plan.filters if p.name in self.plan.by_row and p.name not in self.slack]

    @cached_property
    def asked_by_state(self) -> list[FilterPlugin]:
        """Filters to ask again as well when the cycle state changes."""
        names = {plugin.name for plugin in self.asked_by_row}
        return [p for p in self.plan.filters if p.name in self.plan.worldly and p.name not in names]

    def _filter(self, nodes: Nodes) -> Nodes:
        """All filters in their order; returns the nodes that pass."""
        for plugin in self.plan.filters:
            alone = self._must_be_alone(plugin, nodes)
            special = nodes.rows[alone].tolist()
            nodes = self._filter_together(plugin, nodes.where(~alone) if special else nodes)
            kept = [row for row in special if self._filter_alone(plugin, row)]
            if kept:
                nodes = Nodes(nodes.columns, np.sort(np.append(nodes.rows, kept)))
        return nodes

    def _must_be_alone(self, plugin: FilterPlugin, nodes: Nodes) -> BoolArray:
        """Which nodes this filter has to be asked about one by one."""
        plan, name = self.plan, plugin.name
        if name in plan.by_row and name not in plan.by_sums:
            return np.ones(len(nodes), dtype=np.bool_)
        if name in plan.worldly and plan.followers:
            return np.array([bool(self.told(row)) for row in nodes.rows.tolist()], dtype=np.bool_)
        return np.zeros(len(nodes), dtype=np.bool_)

    def _filter_together(self, plugin: FilterPlugin, nodes: Nodes) -> Nodes:
        if not len(nodes):
            return nodes
        kept, error = filter_dense(plugin, self.plan.state, self.plan.pod, nodes, self.statuses)
        if error.is_success:
            return kept
        # Somebody's Error must not be everybody's: who asks for one node learns of that node alone.
        rows = [row for row in nodes.rows.tolist() if self._filter_alone(plugin, row)]
        return Nodes(nodes.columns, np.array(rows, dtype=np.int64))

    def _filter_alone(self, plugin: FilterPlugin, row: int) -> bool:
        state, status = self.state(row)
        if status.is_success:
            status = filter_by(plugin, state, self.plan.pod, self.rows.view(row))
        if status.is_success:
            return True
        self.statuses.set_row(row, status)
        return False


class RowClearing:
    """One of these nodes; implements `framework.handle.Clearing`."""

    __slots__ = ("_all", "_broken", "_room", "_row", "node_name", "victims")

    def __init__(self, clearings: Clearings, row: int) -> None:
        self._all = clearings
        self._row = row
        self._broken = SUCCESS
        self._room: Room | None = None
        self.node_name = clearings.names[row]
        self.victims: PodTail = clearings.tails[row]

    @property
    def status(self) -> Status:
        return self._all.status(self._row) if self._broken.is_success else self._broken

    def put_back(self, numbers: Iterable[int]) -> list[int]:
        everybody = self._all
        if self._room is None:
            self._room = Room(everybody.slack.values(), self._row, self.victims)
        if not everybody.asked_by_row and not everybody.told(self._row):
            return self._room.fill(numbers)
        return [number for number in numbers if not self._put_back(number, self._room)]

    def _put_back(self, number: int, room: Room) -> bool:
        if not room.admits(number) or not self._fits_beside(self.victims[number]):
            return False
        room.take(number)
        return True

    def _fits_beside(self, pod: Pod) -> bool:
        everybody, plan = self._all, self._all.plan
        told = pod.metadata.uid in everybody.told(self._row)
        everybody.rows.add_pod(self._row, pod)
        view = everybody.rows.view(self._row)
        state, _ = everybody.state(self._row)
        if told:
            self._note(run_add_pod(plan.profile, state, plan.pod, pod, view))
        asked = [*everybody.asked_by_row, *everybody.asked_by_state] if told else everybody.asked_by_row
        if all(filter_by(plugin, state, plan.pod, view).is_success for plugin in asked):
            return True
        everybody.rows.remove_pod(self._row, pod)
        if told:
            self._note(run_remove_pod(plan.profile, state, plan.pod, pod, everybody.rows.view(self._row)))
        return False

    def _note(self, status: Status) -> None:
        """A plugin that cannot follow makes the node useless."""
        if self._broken.is_success and not status.is_success:
            self._broken = status
