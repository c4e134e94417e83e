"""Many nodes in a dry run at once, each without some of its pods. Implements `framework.handle.Clearings`.

Each node is a world of its own, but few plugins notice. A filter that does not read the row, or reads
nothing but sums there (`slack`), is asked about all nodes in one call, on rows that lack their victims.
Others read the pods of a node from its view, so they are asked about one node at a time. So are those that
follow other pods through AddPod and RemovePod where a victim concerns them: only then the node gets a cycle
state of its own. Plugins stay in their configured order, so the first one that refuses a node is the one
that is told.

Putting victims back asks only the filters that can change their mind: those that read the row, and those that
follow other pods if this one concerns them. Where sums are all that matters nobody is asked at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.hot import HeadroomFilterPlugin
from mooring.framework.nodes import BoolArray, IntArray, Nodes
from mooring.framework.points import FilterPlugin, PreFilterPlugin
from mooring.framework.ranking import Tails
from mooring.framework.status import SUCCESS, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.filtering import filter_by, filter_dense
from mooring.runtime.following import Plan
from mooring.runtime.slack import Room


class Alone(Protocol):
    """One node whose victims return one by one."""

    @property
    def status(self) -> Status: ...

    def fits_beside(self, number: int) -> bool:
        """Put a victim back, if the pod still fits beside it."""
        ...


class Clearings:
    """The nodes of one dry run, by number. `trials` are nodes that are judged in another way."""

    def __init__(
        self,
        plan: Plan,
        names: Sequence[str],
        victims: Sequence[Sequence[Pod]],
        trials: Mapping[int, Alone],
    ) -> None:
        self.plan = plan
        self.names = names
        self.trials = trials
        self.rows = plan.profile.services.what_if_rows(names)
        self.tails: Tails = self.rows.hide(victims)
        self._concerned = plan.concerned(self.tails)
        """Per follower: victims that concern it beyond their own row."""
        anybody = np.zeros(self.tails.size, dtype=np.int64)
        for mask in self._concerned:
            anybody |= mask
        self._followed: BoolArray = self.tails.sums(anybody) > 0
        """Rows with such victims."""
        self._states: dict[int, CycleState] = {}
        nodes = self.rows.nodes()
        self.statuses = NodeStatuses(nodes)
        self._fitting = self._filter(nodes)
        self.room = Room(self.tails)
        self._asked_by_row: list[FilterPlugin] | None = None
        self._asked_again: dict[tuple[str, ...], list[FilterPlugin]] = {}

    @property
    def fitting(self) -> IntArray:
        fitting = self._fitting.rows
        passed: IntArray = fitting[self.statuses.ids[fitting] == 0]
        return passed

    def put_back(self, *turns: BoolArray | None) -> BoolArray:
        away = np.zeros(self.tails.size, dtype=np.bool_)
        rows = self._fitting.rows
        alone = self._one_by_one(rows)
        together = rows[~alone]
        if not alone.any():
            self.room.forget_plenty(rows)
        self.room.fill(together, turns, away)
        for row in rows[alone].tolist():
            self._put_back_alone(row, turns, away)
        return away

    def _one_by_one(self, rows: IntArray) -> BoolArray:
        """Which nodes need more than sums when victims return."""
        if self.asked_by_row:
            return np.ones(len(rows), dtype=np.bool_)
        return self._followed[rows] | np.isin(rows, list(self.trials))

    def _put_back_alone(self, row: int, turns: Sequence[BoolArray | None], away: BoolArray) -> None:
        single = self.trials.get(row) or RowClearing(self, row)
        start = int(self.tails.offsets[row])
        for turn in turns:
            for number in range(int(self.tails.lengths[row])):
                if turn is None or turn[start + number]:
                    away[start + number] = not single.fits_beside(number)
        if not single.status.is_success:
            self.statuses.set_row(row, single.status)

    def told(self, row: int) -> list[list[PreFilterPlugin]]:
        """By number of the victim: the plugins that it concerns beyond their own row."""
        start = int(self.tails.offsets[row])
        mine = slice(start, start + int(self.tails.lengths[row]))
        followers = self.plan.followers
        if not followers:
            return [[]] * int(self.tails.lengths[row])
        columns = zip(*(mask[mine].tolist() for mask in self._concerned), strict=True)
        return [[plugin for plugin, hit in zip(followers, hits, strict=True) if hit] for hits in columns]

    def state(self, row: int) -> tuple[CycleState, Status]:
        """The cycle state of that node's world, without its victims."""
        if not self._followed[row]:
            return self.plan.state, SUCCESS
        state = self._states.get(row)
        if state is not None:
            return state, SUCCESS
        state = self._states[row] = self.plan.state.clone()
        view, tail = self.rows.view(row), self.tails.tails[row]
        for number, plugins in enumerate(self.told(row)):
            status = self.plan.tell(plugins, state, tail[number], view, added=False) if plugins else SUCCESS
            if not status.is_success:
                return state, status
        return state, SUCCESS

    @property
    def asked_by_row(self) -> list[FilterPlugin]:
        """Filters to ask again whenever the row changes: those that read it and cannot say how much room they
        see."""
        if self._asked_by_row is None:
            plan = self.plan
            reading = [plugin for plugin in plan.filters if plugin.name in plan.by_row]
            self._asked_by_row = [
                plugin
                for plugin in reading
                if plugin.name not in plan.by_sums
                or not isinstance(plugin, HeadroomFilterPlugin)
                or not self.room.limit(plugin, plan.state, plan.pod, self._fitting)
            ]
        return self._asked_by_row

    def asked_again(self, told: Sequence[PreFilterPlugin]) -> list[FilterPlugin]:
        """Filters that may change their mind when a victim returns that these plugins were told of: those
        that read the row, and those that the cycle state matters to. A filter that follows pods itself is
        left out if it was not told."""
        key = tuple(plugin.name for plugin in told)
        if key not in self._asked_again:
            followers = {plugin.name for plugin in self.plan.followers} - set(key)
            worldly = self.plan.worldly - followers if told else set()
            by_row = {plugin.name for plugin in self.asked_by_row}
            self._asked_again[key] = [p for p in self.plan.filters if p.name in by_row or p.name in worldly]
        return self._asked_again[key]

    def _filter(self, nodes: Nodes) -> Nodes:
        """All filters in their order; returns the nodes that pass."""
        for row, trial in self.trials.items():
            if not trial.status.is_success:
                self.statuses.set_row(row, trial.status)
        ordinary = nodes
        if self.trials:
            ordinary = nodes.where(~np.isin(nodes.rows, list(self.trials)))
        kept = self._filter_ordinary(ordinary)
        passed = [row for row, trial in self.trials.items() if trial.status.is_success]
        return _with(kept, passed)

    def _filter_ordinary(self, nodes: Nodes) -> Nodes:
        for plugin in self.plan.filters:
            alone = self._must_be_alone(plugin, nodes)
            special = nodes.rows[alone].tolist() if alone is not None else []
            nodes = self._filter_together(plugin, nodes.where(~alone) if alone is not None else nodes)
            nodes = _with(nodes, [row for row in special if self._filter_alone(plugin, row)])
        return nodes

    def _must_be_alone(self, plugin: FilterPlugin, nodes: Nodes) -> BoolArray | None:
        """Which nodes this filter has to be asked about one by one; None for none."""
        plan, name = self.plan, plugin.name
        if name in plan.by_row and name not in plan.by_sums:
            return np.ones(len(nodes), dtype=np.bool_)
        if name in plan.worldly and plan.followers:
            return self._followed[nodes.rows]
        return None

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
    """One of these nodes, when its victims return one by one."""

    __slots__ = ("_all", "_row", "_told", "status")

    def __init__(self, clearings: Clearings, row: int) -> None:
        self._all = clearings
        self._row = row
        self._told = clearings.told(row)
        self.status = SUCCESS

    def fits_beside(self, number: int) -> bool:
        room = self._all.room
        if not room.admits(self._row, number) or not self._asked(number):
            return False
        room.take(self._row, number)
        return True

    def _asked(self, number: int) -> bool:
        everybody, row, plugins = self._all, self._row, self._told[number]
        pod, plan = everybody.tails.tails[row][number], everybody.plan
        state, _ = everybody.state(row)
        everybody.rows.add_pod(row, pod)
        view = everybody.rows.view(row)
        if plugins:
            self._note(plan.tell(plugins, state, pod, view, added=True))
        for plugin in everybody.asked_again(plugins):
            if not filter_by(plugin, state, plan.pod, view).is_success:
                break
        else:
            return True
        everybody.rows.remove_pod(row, pod)
        if plugins:
            self._note(plan.tell(plugins, state, pod, everybody.rows.view(row), added=False))
        return False

    def _note(self, status: Status) -> None:
        """A plugin that cannot follow makes the node useless."""
        if self.status.is_success:
            self.status = status


def _with(nodes: Nodes, rows: Sequence[int]) -> Nodes:
    """These nodes and some more."""
    return Nodes(nodes.columns, np.sort(np.append(nodes.rows, rows))) if rows else nodes
