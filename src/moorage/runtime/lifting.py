"""Adapters between the scalar and the vector form of Score, and validation of scores.

An error in here is raised as `NodeFailure`, which names the node that the plugin was scoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from moorage.api.failures import failure_text, repr_of
from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import IntArray, Nodes
from moorage.framework.points import SCORE
from moorage.framework.status import Status


class NodeFailure(Exception):
    """A plugin raised, or returned an invalid value, for one node."""

    def __init__(self, node: str, cause: BaseException) -> None:
        super().__init__(failure_text(cause))
        self.node = node
        self.__cause__ = cause


def lift_score(plugin: Any, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
    """Call the scalar `score` for every node."""
    out: IntArray = np.empty(len(nodes), dtype=np.int64)
    call = plugin.score
    for index, node in enumerate(nodes):
        try:
            value = call(state, pod, node)
            if isinstance(value, Status):
                if not value.is_success:
                    return value
                raise TypeError("score() returned a Success status instead of a number")
            out[index] = whole(value)
        except BaseException as error:
            raise NodeFailure(node.name, error) from error
        if (watch := state.stopwatch) is not None and watch.now() > watch.next_look:
            watch.check(plugin.name, SCORE)
    return out


_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def whole(value: Any) -> int:
    """Return a score as int64: a finite int or float, truncated. A bool or a string is not a score."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"expected a number as score, got {repr_of(value)}")
    if not isinstance(value, int) and not np.isfinite(value):
        raise ValueError(f"a score must be finite, got {value!r}")
    cut = int(value)
    if not _SMALLEST <= cut <= _LARGEST:
        raise ValueError("a score must fit into 64 bits")
    return cut


def fill_scores(
    score_nodes: Callable[[CycleState, Pod, Nodes], Any], state: CycleState, pod: Pod, nodes: Nodes, out: IntArray
) -> Status | None:
    """Write scores from an array into `out`: validate, truncate, copy."""
    answer = score_nodes(state, pod, nodes)
    if isinstance(answer, Status):
        return answer
    write_scores(answer, nodes, out)
    return None


def write_scores(answer: Any, nodes: Nodes, out: IntArray) -> None:
    """Copy an array of scores into `out`; fractions are truncated, NaN and infinity are rejected."""
    if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "iuf":
        raise TypeError(f"expected an array of int64 or float64 scores, got {repr_of(answer)}")
    if answer.shape != out.shape:
        raise ValueError(f"expected {len(out)} scores, one per node, got an array of shape {answer.shape}")
    if answer.dtype.kind == "f":
        finite = np.isfinite(answer)
        if not finite.all():
            index = int(np.argmin(finite))
            bad = ValueError(f"a score must be finite, got {answer[index]}")
            raise NodeFailure(nodes.names[index], bad)
    if answer.dtype.kind != "i":
        # 2^63 itself is a float, the largest int64 is none.
        outside = answer >= 2.0**63 if answer.dtype.kind == "u" else np.abs(answer) >= 2.0**63
        if outside.any():
            raise NodeFailure(nodes.names[int(np.argmax(outside))], ValueError("a score must fit into 64 bits"))
    out[:] = answer  # numpy cuts fractions towards zero


def lift_normalize(plugin: Any, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
    """Pass the scores to the scalar `normalize_scores` by node name and read them back."""
    named = dict(zip(nodes.names, scores.tolist(), strict=True))
    answer = plugin.normalize_scores(state, pod, named)
    if isinstance(answer, Status):
        return answer
    if not isinstance(answer, Mapping):
        raise TypeError(f"normalize_scores() must return a mapping of node names to scores, got {repr_of(answer)}")
    unknown = sorted(set(answer) - set(named))
    if unknown:
        raise ValueError(f"normalize_scores() returned a score for {unknown[0]!r}, which is not among the nodes")
    out: IntArray = np.empty(len(nodes), dtype=np.int64)
    for index, name in enumerate(nodes.names):
        if name not in answer:
            raise NodeFailure(name, ValueError("normalize_scores() returned no score for this node"))
        try:
            out[index] = whole(answer[name])
        except (TypeError, ValueError) as error:
            raise NodeFailure(name, error) from error
    return out
