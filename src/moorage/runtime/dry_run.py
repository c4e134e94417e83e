"""Dry runs: add pods to nodes and remove them, invisibly to everything outside.

A trial keeps the list of its changes per node and a clone of the cycle state. Rows are copied when a node is read, once
for all trials of a session with the same changes. AddPod and RemovePod of the plugins update counts over the cluster on
the clone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.preemption import Budgets, Candidates, VictimsOn
from moorage.framework.status import SUCCESS, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.dry_run_plugins import DryRunPlugins, is_extended
from moorage.runtime.filtering import filter_one, run_add_pod, run_filters, run_remove_pod
from moorage.runtime.pre_filtering import outside, run_pre_filter
from moorage.runtime.preemption.budgets import ClusterBudgets
from moorage.runtime.preemption.search import CandidateSearch
from moorage.runtime.preemption.trial import NodesWithoutVictims
from moorage.runtime.profile import Profile
from moorage.state.overlay import OverlayRows


class DryRunChange(NamedTuple):
    """One pod that was added to a node or removed from it."""

    added: bool
    pod: Pod

    def apply(self, row: OverlayRows) -> None:
        (row.add_pod if self.added else row.remove_pod)(0, self.pod)


Changes = dict[str, tuple[DryRunChange, ...]]


class Inside(NamedTuple):
    """The nodes that PreFilter left, and the verdict on all others."""

    names: frozenset[str]
    verdict: Status


class Session:
    """Implements `framework.handle.DryRun` for one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._order: list[tuple[str, DryRunChange]] = []
        self._changes: Changes = {}
        self._rows: dict[str, tuple[tuple[DryRunChange, ...], OverlayRows]] = {}
        """Node → changes and its row after them, for all trials that see just these."""
        self._placed: set[str] = set()
        """UIDs of the pods that were added: their nominations do not count beside them."""

    def add_pod(self, node_name: str, pod: Pod) -> None:
        self._placed.add(pod.uid)
        self._change(node_name, DryRunChange(True, pod))

    def remove_pod(self, node_name: str, pod: Pod) -> None:
        self._placed.discard(pod.uid)
        self._change(node_name, DryRunChange(False, pod))

    def _change(self, node_name: str, change: DryRunChange) -> None:
        self._order.append((node_name, change))
        self._changes[node_name] = (*self._changes.get(node_name, ()), change)

    def row(self, node_name: str, changes: tuple[DryRunChange, ...]) -> OverlayRows:
        """Return the node's row after these changes; it is shared, so callers must not change it."""
        found = self._rows.get(node_name)
        if found is None or found[0] is not changes:
            found = self._rows[node_name] = changes, self.copied(node_name, changes)
        return found[1]

    def copied(self, node_name: str, changes: tuple[DryRunChange, ...]) -> OverlayRows:
        """Return a private copy of a row."""
        row = self._profile.services.dry_run_rows((node_name,))
        for change in changes:
            change.apply(row)
        return row

    def trial(self, pod: Pod, state: CycleState | None = None) -> PodTrial:
        inside: Inside | None = None
        if state is None:
            state = CycleState()
            found = run_pre_filter(self._profile, state, pod, self._profile.services.nodes())
            status = found.status
            if found.node_names is not None:
                inside = Inside(found.node_names, outside(found.narrowed_by))
        else:
            state, status = state.clone(), SUCCESS
        trial = PodTrial(self._profile, self, pod, state, status, dict(self._changes), inside)
        if any(is_extended(p) for p in self._profile.pre_filter if p.name not in state.skip_filter):
            for node_name, change in self._order:
                trial.notify(node_name, change)
        return trial

    def remove_victims(self, pod: Pod, state: CycleState, victims: Mapping[str, Sequence[Pod]]) -> NodesWithoutVictims:
        """Judge nodes without their victims: nodes that this session has changed, or that other pods are nominated to,
        in one trial each; all others together."""
        special = {*self._changes, *self.contested(pod)}
        names = list(victims)
        trials = {
            number: NodeTrial(self.trial(pod, state), name, victims[name])
            for number, name in enumerate(names if special else ())
            if name in special
        }
        plugins = DryRunPlugins(self._profile, pod, self.trial(pod, state).state if self._order else state)
        return NodesWithoutVictims(plugins, names, list(victims.values()), trials)

    def candidates(
        self, pod: Pod, state: CycleState, nodes: Nodes, wanted: int, victims_on: VictimsOn, budgets: Budgets
    ) -> Candidates:
        """See `framework.handle.DryRun`."""
        if not isinstance(budgets, ClusterBudgets):
            raise TypeError("budgets must come from handle.preemption(policy).budgets()")
        search = CandidateSearch(self.remove_victims, pod, state, budgets)
        return search.run(nodes, wanted, victims_on).candidates

    def contested(self, pod: Pod) -> list[str]:
        """Return the nodes with nominated pods that this pod must leave space for."""
        return [name for name in self._profile.services.nominator.nodes() if self.rivals(pod, name)]

    def rivals(self, pod: Pod, node_name: str) -> list[Pod]:
        """Return the pods nominated to a node that this session has not added to a node."""
        found = rivals(self._profile, pod, node_name)
        return [other for other in found if other.uid not in self._placed]


class PodTrial:
    """Implements `framework.handle.Trial`: one pod, on nodes as this trial has changed them."""

    def __init__(
        self,
        profile: Profile,
        session: Session,
        pod: Pod,
        state: CycleState,
        status: Status,
        changes: Changes,
        inside: Inside | None = None,
    ) -> None:
        self._profile = profile
        self._session = session
        self._pod = pod
        self._changes = changes
        self._inside = inside
        self._rows: dict[str, OverlayRows] = {}
        """Nodes that this trial itself has changed, one row each."""
        self.state = state
        self.status = status

    def add_pod(self, node_name: str, pod: Pod) -> None:
        self.apply(node_name, DryRunChange(True, pod))

    def remove_pod(self, node_name: str, pod: Pod) -> None:
        self.apply(node_name, DryRunChange(False, pod))

    def apply(self, node_name: str, change: DryRunChange) -> None:
        """Record a change and notify the plugins, which see the node after the change."""
        self._changes[node_name] = changes = (*self._changes.get(node_name, ()), change)
        if node_name in self._rows:
            change.apply(self._rows[node_name])
        else:
            self._rows[node_name] = self._session.copied(node_name, changes)
        self.notify(node_name, change)

    def notify(self, node_name: str, change: DryRunChange) -> None:
        """Let the plugins update what they have computed for the pod."""
        run = run_add_pod if change.added else run_remove_pod
        status = run(self._profile, self.state, self._pod, change.pod, self.node(node_name))
        if self.status.is_success and not status.is_success:
            self.status = status

    def node(self, node_name: str) -> NodeView:
        row = self._rows.get(node_name)
        if row is None:
            row = self._session.row(node_name, self._changes.get(node_name, ()))
        return row.view(0)

    def fork(self) -> PodTrial:
        state, changes = self.state.clone(), dict(self._changes)
        return PodTrial(self._profile, self._session, self._pod, state, self.status, changes, self._inside)

    def filter(self, node_name: str) -> Status:
        if self._inside is not None and node_name not in self._inside.names:
            return self._inside.verdict
        status = self.filter_with_nominated(node_name)
        return filter_one(self._profile, self.state, self._pod, self.node(node_name)) if status.is_success else status

    def filter_with_nominated(self, node_name: str) -> Status:
        """Run the first pass for a node with nominated pods: would the pod fit beside them? Success if none of them has
        a priority that counts."""
        nominated = self._session.rivals(self._pod, node_name)
        if not nominated:
            return SUCCESS
        beside = self.fork()
        for other in nominated:
            beside.add_pod(node_name, other)
        if not beside.status.is_success:
            return beside.status
        return filter_one(self._profile, beside.state, self._pod, beside.node(node_name))

    def filter_all(self) -> NodeStatuses:
        """Filter every node: unchanged ones together in columns, changed and nominated ones individually."""
        nodes = self._profile.services.nodes()
        statuses = NodeStatuses(nodes)
        special = {*self._changes, *self._session.contested(self._pod)}
        plain = nodes.where(~nodes.named(*special)) if special else nodes
        if self._inside is not None:
            inside = plain.named(*self._inside.names)
            statuses.set_rows(plain.rows[~inside], self._inside.verdict)
            plain = plain.where(inside)
        survivors, error = run_filters(self._profile, self.state, self._pod, plain, statuses)
        if not error.is_success:
            statuses.set_rows(survivors.rows, error)
        for name in sorted(special, key=nodes.columns.row_of):
            row = nodes.columns.row_of(name)
            if row >= 0 and not (status := self.filter(name)).is_success:
                statuses.set_rows(np.array([row]), status)
        return statuses


class NodeTrial:
    """One node without its victims; every plugin is called at every step."""

    def __init__(self, trial: PodTrial, node_name: str, victims: Sequence[Pod]) -> None:
        self._trial = trial
        self._node_name = node_name
        self._victims = victims
        for pod in victims:
            trial.remove_pod(node_name, pod)
        self._first = trial.filter(node_name) if trial.status.is_success else trial.status

    @property
    def status(self) -> Status:
        """Return the result of all filters without the victims, until one fails."""
        return self._first if self._trial.status.is_success else self._trial.status

    def fits_beside(self, number: int) -> bool:
        """Put a victim back if the pod still fits beside it."""
        pod = self._victims[number]
        self._trial.add_pod(self._node_name, pod)
        if self._trial.filter(self._node_name).is_success:
            return True
        self._trial.remove_pod(self._node_name, pod)
        return False


def rivals(profile: Profile, pod: Pod, node_name: str) -> list[Pod]:
    """Return the pods nominated to the node that this pod must leave space for."""
    nominated = profile.services.nominator.nominated_on(node_name)
    return [other for other in nominated if other.uid != pod.uid and other.priority >= pod.priority]
