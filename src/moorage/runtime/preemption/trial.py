"""Many nodes in a dry run at once, each without its victims. Implements `framework.handle.PreemptionTrial`.

Each node is judged by itself, but few plugins notice. A filter that does not read the row, or reads nothing but sums
there (`headroom`), is asked about all nodes in one call, on rows that lack their victims. Other filters read the pods
of a node from its view, so they are asked about one node at a time. So are plugins with AddPod and RemovePod where a
victim concerns them: only then the node gets a cycle state of its own. Plugins stay in their configured order, so the
first one that refuses a node is the one that is recorded.

A reprieve asks only the filters that can change their mind: those that read the row, and those whose plugin is notified
of the victim that returns. Where sums are all that matters no filter is asked at all: `headroom` says how much more
other pods may request on each node, and a victim that returns is a subtraction, done for all nodes at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import HeadroomFilterPlugin
from moorage.framework.nodes import BoolArray, IntArray, Nodes
from moorage.framework.points import FilterPlugin, PreFilterPlugin
from moorage.framework.status import SUCCESS, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.calling import failed
from moorage.runtime.dry_run_plugins import DryRunPlugins
from moorage.runtime.filtering import filter_by, filter_dense
from moorage.state.ranking import VictimColumns

_PLENTY = np.int64(2**62)


class SingleTrial(Protocol):
    """One node whose victims return one by one."""

    @property
    def status(self) -> Status: ...

    def fits_beside(self, number: int) -> bool:
        """Put a victim back if the pod still fits beside it."""
        ...


class NodesWithoutVictims:
    """The nodes of one dry run, by number. `trials` are nodes that are judged individually."""

    def __init__(
        self,
        plugins: DryRunPlugins,
        names: Sequence[str],
        victims: Sequence[Sequence[Pod]],
        trials: Mapping[int, SingleTrial],
    ) -> None:
        self.plugins = plugins
        self.names = names
        self.trials = trials
        self.rows = plugins.profile.services.dry_run_rows(names)
        self.victims: VictimColumns = self.rows.hide(victims)
        self._concerned = plugins.concerned(self.victims)
        """Per extended plugin: victims that concern it beyond their own row."""
        concerned = np.zeros(self.victims.size, dtype=np.int64)
        for mask in self._concerned:
            concerned |= mask
        self._with_own_state: BoolArray = self.victims.sums(concerned) > 0
        """Rows with victims that concern an extended plugin."""
        self._states: dict[int, CycleState] = {}
        nodes = self.rows.nodes()
        self.statuses = NodeStatuses(nodes)
        self._fitting = self._filter(nodes)
        self.headroom = Headroom(self.victims)
        self._asked_by_row: list[FilterPlugin] | None = None
        self._asked_again: dict[tuple[str, ...], list[FilterPlugin]] = {}

    @property
    def fitting(self) -> IntArray:
        fitting = self._fitting.rows
        passed: IntArray = fitting[self.statuses.ids[fitting] == 0]
        return passed

    def reprieve(self, *turns: BoolArray | None) -> BoolArray:
        away = np.zeros(self.victims.size, dtype=np.bool_)
        rows = self._fitting.rows
        alone = self._one_by_one(rows)
        together = rows[~alone]
        if not alone.any():
            self.headroom.forget_plenty(rows)
        self.headroom.fill(together, turns, away)
        for row in rows[alone].tolist():
            self._reprieve_alone(row, turns, away)
        return away

    def _one_by_one(self, rows: IntArray) -> BoolArray:
        """Return the nodes that need more than sums when victims return."""
        if self.asked_by_row:
            return np.ones(len(rows), dtype=np.bool_)
        return self._with_own_state[rows] | np.isin(rows, list(self.trials))

    def _reprieve_alone(self, row: int, turns: Sequence[BoolArray | None], away: BoolArray) -> None:
        single = self.trials.get(row) or RowTrial(self, row)
        start = int(self.victims.offsets[row])
        for turn in turns:
            for number in range(int(self.victims.lengths[row])):
                if turn is None or turn[start + number]:
                    away[start + number] = not single.fits_beside(number)
        if not single.status.is_success:
            self.statuses.set_row(row, single.status)

    def notified(self, row: int) -> list[list[PreFilterPlugin]]:
        """Return by number of the victim the plugins that it concerns beyond their own row."""
        start = int(self.victims.offsets[row])
        mine = slice(start, start + int(self.victims.lengths[row]))
        extended = self.plugins.extended
        if not extended:
            return [[]] * int(self.victims.lengths[row])
        columns = zip(*(mask[mine].tolist() for mask in self._concerned), strict=True)
        return [[plugin for plugin, hit in zip(extended, hits, strict=True) if hit] for hits in columns]

    def state(self, row: int) -> tuple[CycleState, Status]:
        """Return the cycle state for that node, without its victims."""
        if not self._with_own_state[row]:
            return self.plugins.state, SUCCESS
        state = self._states.get(row)
        if state is not None:
            return state, SUCCESS
        state = self._states[row] = self.plugins.state.clone()
        view, victims = self.rows.view(row), self.victims.by_node[row]
        for number, plugins in enumerate(self.notified(row)):
            if plugins:
                status = self.plugins.notify(plugins, state, victims[number], view, added=False)
                if not status.is_success:
                    return state, status
        return state, SUCCESS

    @property
    def asked_by_row(self) -> list[FilterPlugin]:
        """Return the filters to call again whenever the row changes: those that read it and do not report headroom."""
        if self._asked_by_row is None:
            plugins = self.plugins
            reading = [plugin for plugin in plugins.filters if plugin.name in plugins.by_row]
            self._asked_by_row = [
                plugin
                for plugin in reading
                if plugin.name not in plugins.by_sums
                or not isinstance(plugin, HeadroomFilterPlugin)
                or not self.headroom.limit(plugin, plugins.state, plugins.pod, self._fitting)
            ]
        return self._asked_by_row

    def asked_again(self, notified: Sequence[PreFilterPlugin]) -> list[FilterPlugin]:
        """Return the filters whose answer may change when a victim returns that these plugins are notified of: those
        that read the row or the cycle state. A filter of an extended plugin that is not notified is left out."""
        key = tuple(plugin.name for plugin in notified)
        if key not in self._asked_again:
            unconcerned = {plugin.name for plugin in self.plugins.extended} - set(key)
            cluster_wide = self.plugins.cluster_wide - unconcerned if notified else set()
            again = cluster_wide.union(plugin.name for plugin in self.asked_by_row)
            self._asked_again[key] = [p for p in self.plugins.filters if p.name in again]
        return self._asked_again[key]

    def _filter(self, nodes: Nodes) -> Nodes:
        """Run all filters in order and return the nodes that pass."""
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
        for plugin in self.plugins.filters:
            alone = self._must_be_alone(plugin, nodes)
            special = nodes.rows[alone].tolist() if alone is not None else []
            nodes = self._filter_together(plugin, nodes.where(~alone) if alone is not None else nodes)
            nodes = _with(nodes, [row for row in special if self._filter_alone(plugin, row)])
        return nodes

    def _must_be_alone(self, plugin: FilterPlugin, nodes: Nodes) -> BoolArray | None:
        """Return the nodes for which this filter must be called one by one; None for none."""
        plugins, name = self.plugins, plugin.name
        if name in plugins.by_row and name not in plugins.by_sums:
            return np.ones(len(nodes), dtype=np.bool_)
        if name in plugins.cluster_wide and plugins.extended:
            return self._with_own_state[nodes.rows]
        return None

    def _filter_together(self, plugin: FilterPlugin, nodes: Nodes) -> Nodes:
        if not len(nodes):
            return nodes
        kept, error = filter_dense(plugin, self.plugins.state, self.plugins.pod, nodes, self.statuses)
        if error.is_success:
            return kept
        # The Error of one node must not be that of all: asked about one node, the plugin fails on that alone.
        rows = [row for row in nodes.rows.tolist() if self._filter_alone(plugin, row)]
        return Nodes(nodes.columns, np.array(rows, dtype=np.int64))

    def _filter_alone(self, plugin: FilterPlugin, row: int) -> bool:
        state, status = self.state(row)
        if status.is_success:
            status = filter_by(plugin, state, self.plugins.pod, self.rows.view(row))
        if status.is_success:
            return True
        self.statuses.set_row(row, status)
        return False


class RowTrial:
    """One of these nodes, while its victims return one by one."""

    __slots__ = ("_notified", "_row", "_trial", "status")

    def __init__(self, trial: NodesWithoutVictims, row: int) -> None:
        self._trial = trial
        self._row = row
        self._notified = trial.notified(row)
        self.status = SUCCESS

    def fits_beside(self, number: int) -> bool:
        headroom = self._trial.headroom
        if not headroom.admits(self._row, number) or not self._asked(number):
            return False
        headroom.take(self._row, number)
        return True

    def _asked(self, number: int) -> bool:
        trial, row, notified = self._trial, self._row, self._notified[number]
        pod, plugins = trial.victims.by_node[row][number], trial.plugins
        state, _ = trial.state(row)
        trial.rows.add_pod(row, pod)
        view = trial.rows.view(row)
        if notified:
            self._note(plugins.notify(notified, state, pod, view, added=True))
        for plugin in trial.asked_again(notified):
            if not filter_by(plugin, state, plugins.pod, view).is_success:
                break
        else:
            return True
        trial.rows.remove_pod(row, pod)
        if notified:
            self._note(plugins.notify(notified, state, pod, trial.rows.view(row), added=False))
        return False

    def _note(self, status: Status) -> None:
        """Record that AddPod or RemovePod of a plugin failed, which makes the node unusable."""
        if self.status.is_success:
            self.status = status


class Headroom:
    """The amounts that remain on every row of a dry run while victims return, per resource."""

    def __init__(self, victims: VictimColumns) -> None:
        self._victims = victims
        self._remaining: dict[str, IntArray] = {}
        """Resource → row → amount; of no meaning on rows that no plugin was asked about."""

    def limit(self, plugin: HeadroomFilterPlugin, state: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Apply the headroom that a plugin reports on these nodes. False if it cannot report any, so it must be
        called."""
        try:
            answer = plugin.headroom(state, pod, nodes)
            for resource, column in (answer or {}).items():
                remaining = np.full(len(self._victims), _PLENTY)
                remaining[nodes.rows] = column
                known = self._remaining.get(resource)
                self._remaining[resource] = remaining if known is None else np.minimum(known, remaining)
        except BaseException as error:
            failed(plugin, "Headroom", pod, error)  # logged; its filter can still be asked
            return False
        return answer is not None

    def forget_plenty(self, rows: IntArray) -> None:
        """Drop the resources that are sufficient for all victims of these rows."""
        self._remaining = {
            resource: remaining
            for resource, remaining in self._remaining.items()
            if (self._victims.totals(resource)[rows] > remaining[rows]).any()
        }

    def admits(self, row: int, number: int) -> bool:
        """Return whether one victim of a row may return."""
        at = int(self._victims.offsets[row]) + number
        return all(self._victims.column(name)[at] <= amount[row] for name, amount in self._remaining.items())

    def take(self, row: int, number: int) -> None:
        at = int(self._victims.offsets[row]) + number
        for name, remaining in self._remaining.items():
            remaining[row] -= self._victims.column(name)[at]

    def fill(self, rows: IntArray, masks: Sequence[BoolArray | None], away: BoolArray) -> None:
        """Let the victims of these rows return, in order, where there is headroom, and mark the others as away: first
        the first victim of all rows, then the second. A mask selects the victims; `None` is all of them."""
        resources = [(amount, self._victims.column(name)) for name, amount in self._remaining.items()]
        for mask in masks:
            self._fill(rows, resources, mask, away)

    def _fill(
        self, rows: IntArray, resources: Sequence[tuple[IntArray, IntArray]], mask: BoolArray | None, away: BoolArray
    ) -> None:
        offsets, lengths = self._victims.offsets[rows], self._victims.lengths[rows]
        for number in range(int(lengths.max(initial=0))):
            longer = lengths > number
            if not longer.all():
                rows, offsets, lengths = rows[longer], offsets[longer], lengths[longer]
            here, at = rows, offsets + number
            if mask is not None:
                turn = mask[at]
                here, at = here[turn], at[turn]
            _return_one(here, at, resources, away)


def _return_one(rows: IntArray, at: IntArray, resources: Sequence[tuple[IntArray, IntArray]], away: BoolArray) -> None:
    """Return one victim of each row if there is headroom for every resource, otherwise mark it as away."""
    asked = [(remaining, column[at]) for remaining, column in resources]
    fits = np.ones(len(rows), dtype=np.bool_)
    for remaining, amount in asked:
        fits &= amount <= remaining[rows]
    for remaining, amount in asked:
        remaining[rows] -= amount * fits
    away[at] = ~fits


def _with(nodes: Nodes, rows: Sequence[int]) -> Nodes:
    """Return these nodes and some more."""
    return Nodes(nodes.columns, np.sort(np.append(nodes.rows, rows))) if rows else nodes
