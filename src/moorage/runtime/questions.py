"""Answer what a profile says about one pod on one state of the cluster.

`explain`, `evaluate` and the extender verbs ask these functions, so PreFilter, Filter, PreScore and Score are called in
one order everywhere: that of upstream's schedulePod (pkg/scheduler/schedule_one.go). Nothing is written; the answers
are statuses and scores by row. What only the scheduler knows, such as nominated pods, extenders and sampling, is left
to the caller."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.nodes import BoolArray, Nodes
from moorage.framework.points import FilterPlugin, Plugin
from moorage.framework.status import SUCCESS, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.attempt import Attempt
from moorage.runtime.filtering import filter_rows
from moorage.runtime.pre_filtering import PreFiltered, outside, run_pre_filter
from moorage.runtime.profile import Profile
from moorage.runtime.score_board import ScoreBoard
from moorage.runtime.scoring import Scoring, add_scores, run_pre_score, run_scores

_PASSED = PreFiltered(SUCCESS)


class NamedJudge(Protocol):
    """A plugin, or an extender in its place."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PluginVerdict:
    """The answer of one plugin about all nodes, as if no other plugin refused any."""

    plugin: NamedJudge
    statuses: NodeStatuses
    """The nodes that PreFilter or Filter refuses. Empty if Filter failed."""
    pre: PreFiltered = _PASSED
    """The answer of PreFilter. If it refuses the pod, Filter is not asked."""
    error: str = ""
    """Why Filter could not answer."""

    @property
    def for_all(self) -> Status:
        """The refusal of the pod as a whole, or Success."""
        return self.pre.status

    @property
    def rows(self) -> BoolArray:
        """Row → refused."""
        refused: BoolArray = self.statuses.ids > 0
        return refused

    @property
    def refuses(self) -> bool:
        """Whether the plugin refuses any node, or failed."""
        return bool(len(self.statuses) or self.error or not self.for_all.is_success)


def begin(profile: Profile, pod: Pod, nodes: Nodes) -> tuple[Attempt, PreFiltered]:
    """Start an attempt with nothing known and run PreFilter of the whole profile."""
    attempt = Attempt(QueuedPod(pod, 0.0), profile, nodes)
    attempt.state = CycleState()
    attempt.forget_refusals()
    return attempt, run_pre_filter(profile, attempt.state, pod, nodes)


def narrow(attempt: Attempt, pre: PreFiltered) -> None:
    """Take the rows out of play that PreFilter refuses or leaves out."""
    if not pre.status.is_success:
        attempt.refuse(attempt.ok.copy(), pre.status)
    elif pre.node_names is not None:
        attempt.refuse(attempt.ok & ~attempt.every.nodes.named(*pre.node_names), outside(pre.narrowed_by))


def filter_attempt(attempt: Attempt) -> Status:
    """Run Filter of the whole profile on the rows in play."""
    filters, every = attempt.profile.filter, attempt.every
    return filter_rows(filters, attempt.state, attempt.pod, every, attempt.statuses, attempt.ok)


def ask_each(
    profile: Profile, state: CycleState, pod: Pod, nodes: Nodes, only: Collection[str] = ()
) -> list[PluginVerdict]:
    """Ask every PreFilter and Filter plugin about every node, in the order of the Filter plugins.

    All PreFilter plugins run first, also after one that refuses, and leave their results in `state`. `only` restricts
    the question to the plugins of these names."""
    asked = only or profile.plugins
    pre = {
        plugin.name: run_pre_filter(profile, state, pod, nodes, [plugin])
        for plugin in profile.pre_filter
        if plugin.name in asked
    }
    filters = {plugin.name: plugin for plugin in profile.filter if plugin.name in asked}
    return [
        _verdict(profile.plugins[name], filters.get(name), state, pod, nodes, pre.get(name, _PASSED))
        for name in dict.fromkeys((*filters, *pre))
    ]


def _verdict(
    plugin: Plugin, judging: FilterPlugin | None, state: CycleState, pod: Pod, nodes: Nodes, pre: PreFiltered
) -> PluginVerdict:
    every, statuses = nodes.columns.every_row(), NodeStatuses(nodes)
    ok = every.alive.copy()
    if not pre.status.is_success:
        statuses.set_where(ok, pre.status)
        return PluginVerdict(plugin, statuses, pre)  # Filter relies on what PreFilter would have prepared
    if pre.node_names is not None:
        excluded = ok & ~every.nodes.named(*pre.node_names)
        statuses.set_where(excluded, outside((plugin.name,)))
        ok &= ~excluded
    asked: Iterable[FilterPlugin] = () if judging is None else (judging,)
    status = filter_rows(asked, state, pod, every, statuses, ok)
    return PluginVerdict(plugin, statuses, pre, "" if status.is_success else status.message)


def score_rows(attempt: Attempt, rows: BoolArray) -> tuple[ScoreBoard | None, Status]:
    """Run PreScore and Score of the whole profile over the given rows; no board without Success."""
    scoring = Scoring(attempt.state, attempt.pod, attempt.every, rows)
    status = run_pre_score(attempt.profile.pre_score, attempt.state, attempt.pod, scoring.dense)
    if not status.is_success:
        return None, status
    board, status = run_scores(attempt.profile, scoring)
    return board if status.is_success else None, status


def score_feasible(attempt: Attempt) -> tuple[ScoreBoard | None, Status]:
    """Return the scores of the feasible nodes.

    The scheduler takes a single feasible node without scoring it; here it is scored too."""
    if attempt.board is not None or not attempt.feasible:
        return attempt.board, SUCCESS
    return score_rows(attempt, attempt.ok)


def score_alone(
    profile: Profile, name: str, state: CycleState, pod: Pod, nodes: Nodes
) -> tuple[ScoreBoard | None, Status, Status]:
    """Ask one Score plugin about all nodes: the board, the status of PreScore and that of Score.

    There is no board if the plugin does not score, skips the pod or fails."""
    steps = [step for step in profile.score_steps if step.name == name]
    if not steps or not len(nodes):
        return None, SUCCESS, SUCCESS
    every = nodes.columns.every_row()
    status = run_pre_score([p for p in profile.pre_score if p.name == name], state, pod, lambda: nodes)
    if not status.is_success or name in state.skip_score:
        return None, status, SUCCESS
    scoring = Scoring(state, pod, every, every.alive)
    board = ScoreBoard(every, every.alive, scoring.zeros())
    status = add_scores(board, scoring, steps)
    return board if status.is_success else None, SUCCESS, status
