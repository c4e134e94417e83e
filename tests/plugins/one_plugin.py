"""One plugin on a small cluster, asked in all its forms: every row of the table, the dense nodes, one
node at a time. Row 0 of the table is always a ghost (a node that is gone while its pod remains)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from moorage.api import resources as kinds
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.app.configuration import configure
from moorage.contrib.registry import PLUGINS as CONTRIB
from moorage.explain.evaluate import EvaluatedCase
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import ManyPodsFilterPlugin, ManyPodsScorePlugin
from moorage.framework.nodes import Nodes
from moorage.framework.status import SUCCESS, Code, PreFilterResult, Status, gravest
from moorage.runtime.score_board import ScoreStep
from moorage.state.overlay import Overlay
from moorage.testing import make_node, make_pod
from tests.conformance.plugin_cases import configuration_of

Verdict = dict[str, tuple[Code, tuple[str, ...]]]
"""Refused node → code and reasons."""

DEFAULT = configure(discover=False)
GHOST = make_node("ghost")
GHOST_POD = make_pod("left-behind", node="ghost", cpu="3", memory="3Gi", ports=[80])


def as_status(answer: Any) -> Status:
    """A plugin's answer, where None means Success."""
    assert answer is None or isinstance(answer, Status), answer
    return SUCCESS if answer is None else answer


@dataclass
class Asked:
    """A plugin, a pod, and what the plugin's PreFilter made of it."""

    world: EvaluatedCase
    plugin: Any
    pod: Pod
    state: CycleState
    pre: Status | PreFilterResult

    @property
    def skipped(self) -> bool:
        return isinstance(self.pre, Status) and self.pre.is_skip

    def refused(self) -> Verdict:
        """What Filter says; all forms must say the same."""
        if isinstance(self.pre, Status) and not self.pre.is_success:
            return {}
        one_by_one = self._one_by_one()
        nodes = self.world.nodes
        assert self._together(nodes) == one_by_one
        live = set(nodes.names)
        every = self._together(nodes.columns.every_row().nodes)
        assert {name: verdict for name, verdict in every.items() if name in live} == one_by_one
        assert self._fits_amounts() in (None, live - set(one_by_one))
        return one_by_one

    def scores(self) -> dict[str, int] | None:
        """What Score says, raw; None after a Skip in PreScore. All forms must say the same."""
        nodes = self.world.nodes
        if hasattr(self.plugin, "pre_score"):
            status = as_status(self.plugin.pre_score(self.state, self.pod, nodes))
            if status.is_skip:
                return None
            assert status.is_success, status
        return self.raw_scores()

    def raw_scores(self) -> dict[str, int]:
        """Return the scores without PreScore, as in a profile that switches it off."""
        nodes = self.world.nodes
        one_by_one = {node.name: int(self.plugin.score(self.state, self.pod, node)) for node in nodes}
        assert self._scored(nodes) == one_by_one
        every = self._scored(nodes.columns.every_row().nodes)
        assert {name: score for name, score in every.items() if name in one_by_one} == one_by_one
        assert self._scored_many().items() <= one_by_one.items()
        return one_by_one

    def overlay(self, name: str) -> Overlay:
        """A what-if copy of one node's row; row 0 of it."""
        columns: Any = self.world.nodes.columns
        return Overlay(columns, [columns.row_of(name)])

    def _one_by_one(self) -> Verdict:
        answers = {node.name: self.plugin.filter(self.state, self.pod, node) for node in self.world.nodes}
        return {name: (status.code, status.reasons) for name, status in answers.items() if status is not None}

    def _together(self, nodes: Nodes) -> Verdict:
        refusals = self.plugin.filter_nodes(self.state, self.pod, nodes)
        found: Verdict = {}
        for index, name in enumerate(nodes.names):
            hits = [entry for entry in refusals.entries if entry.mask[index]] if refusals else []
            if hits:
                found[name] = (gravest(entry.code for entry in hits), tuple(entry.text(index) for entry in hits))
        return found

    def _fits_amounts(self) -> set[str] | None:
        """By the pod's amounts alone; None where these do not tell."""
        if not isinstance(self.plugin, ManyPodsFilterPlugin):
            return None
        amounts = self.plugin.filter_amounts(self.state, self.pod)
        if amounts is None or 0 in amounts:  # nothing asked fits an overcommitted node, on a closer look
            return None
        return {node.name for node in self.world.nodes if self.plugin.fits_amounts(amounts, node)}

    def _scored_many(self) -> dict[str, int]:
        """For this pod between two others, on those nodes where that is known."""
        if not isinstance(self.plugin, ManyPodsScorePlugin):
            return {}
        amounts = self.plugin.score_amounts(self.state, self.pod)
        if amounts is None:
            return {}
        columns = np.array([[0, amount, 2 * amount + 1] for amount in amounts], dtype=np.float64)
        answers = {node.name: self.plugin.score_many(columns, node) for node in self.world.nodes}
        return {name: int(scores[1]) for name, scores in answers.items() if scores is not None}

    def _scored(self, nodes: Nodes) -> dict[str, int]:
        out = np.full(len(nodes), 999, dtype=np.int64)
        answer = ScoreStep(self.plugin, 1).score_into(self.state, self.pod, nodes, out)
        if isinstance(answer, int):
            out[:] = answer
        else:
            assert answer is None
        return dict(zip(nodes.names, out.tolist(), strict=True))


def ask(
    plugin: str,
    pod: Pod,
    nodes: Sequence[Node],
    pods: Sequence[Pod] = (),
    args: Mapping[str, Any] | None = None,
    *,
    pre_filter: bool = True,
    custom: Mapping[str, Sequence[Any]] | None = None,
) -> Asked:
    """Run PreFilter, if the plugin has one and it is wanted. `custom` are objects by plural name."""
    world = EvaluatedCase(
        {
            "nodes": [msgspec.to_builtins(node) for node in (GHOST, *nodes)],
            "pods": [msgspec.to_builtins(other) for other in (GHOST_POD, *pods)],
            "pod": msgspec.to_builtins(pod),
            "args": {plugin: args} if args and plugin not in CONTRIB else {},
        },
        configuration_of(plugin, args) if plugin in CONTRIB else DEFAULT,
        custom=custom,
    )
    world.engine.services.nodes()
    world.put(kinds.NODES, None, GHOST)
    world.engine.drain()
    asked = Asked(world, world.profile.plugins[plugin], world.pod, CycleState(), Status())
    if pre_filter and hasattr(asked.plugin, "pre_filter"):
        answer = asked.plugin.pre_filter(asked.state, asked.pod, world.nodes)
        asked.pre = answer if isinstance(answer, PreFilterResult) else as_status(answer)
    return asked
