"""One form of Filter and Score from the other: scalar lifted to all nodes, vector lowered to one.

A failure in here is raised as `NodeFailure`, which keeps the node that the plugin was looking at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.status import SUCCESS, Code, Status

F = TypeVar("F", bound=Callable[..., Any])


class NodeFailure(Exception):
    """A plugin raised, or answered nonsense, for one node."""

    def __init__(self, node: str, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.node = node
        self.__cause__ = cause


def required(method: F) -> F:
    """Marks a method that a plugin with this base class has to define; found missing when it is
    registered."""
    method.__required__ = True  # type: ignore[attr-defined]
    return method


def derived(method: F) -> F:
    """Marks a method that a plugin may define or leave, so that `writes` can tell which."""
    method.__derived__ = True  # type: ignore[attr-defined]
    return method


def writes(plugin: object, method: str) -> bool:
    """Whether a plugin, or plugin class, defines an optional `method` itself."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return not hasattr(getattr(cls, method), "__derived__")


def is_marked(method: object) -> bool:
    """Whether a member of a base class is a method for plugins to define."""
    return hasattr(method, "__required__") or hasattr(method, "__derived__")


def unwritten(cls: type) -> list[str]:
    """Complaints about methods that the base classes of a plugin class require and that it does not
    define."""
    found = {name: getattr(cls, name) for name in dir(cls)}
    marked = {name: method for name, method in found.items() if hasattr(method, "__required__")}
    return [
        f"inherits {method.__qualname__.partition('.')[0]} but defines no {name}()"
        for name, method in sorted(marked.items())
    ]


def missing(plugin: Any, method: str) -> TypeError:
    """For a point that a class lists among its bases without writing the method."""
    return TypeError(f"plugin {plugin.name!r} ({type(plugin).__qualname__}) does not define {method}()")


def as_status(answer: Any) -> Status:
    """`None` is Success; anything else that is no Status is a mistake of the plugin."""
    if answer is None:
        return SUCCESS
    if isinstance(answer, Status):
        return answer
    raise TypeError(f"expected a Status or None, got {answer!r}")


def lift_filter(plugin: Any, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals:
    """Call the scalar `filter` for every node and collect its refusals."""
    refused: dict[Code, tuple[list[int], dict[int, Status]]] = {}
    call = plugin.filter
    for index, node in enumerate(nodes):
        try:
            answer = call(state, pod, node)
            if answer is None:
                continue
            status = as_status(answer)
        except Exception as error:
            raise NodeFailure(node.name, error) from error
        if status.code is not Code.SUCCESS:
            indices, statuses = refused.setdefault(status.code, ([], {}))
            indices.append(index)
            statuses[index] = status
    result = Refusals(nodes)
    for code, (indices, statuses) in refused.items():
        _add_scalar_refusals(result, code, indices, statuses)
    return result


def _add_scalar_refusals(
    result: Refusals, code: Code, indices: list[int], statuses: dict[int, Status]
) -> None:
    # A node may have several reasons; the k-th entry holds the k-th reason of all nodes.
    depth = max(1, *(len(status.reasons) for status in statuses.values()))
    for level in range(depth):
        hit = [i for i in indices if level == 0 or len(statuses[i].reasons) > level]
        mask = np.zeros(len(result.nodes), dtype=np.bool_)
        mask[hit] = True
        texts = {i: statuses[i].reasons[level] if statuses[i].reasons else "" for i in hit}
        result.add(mask, texts.__getitem__, code)


def lower_filter(plugin: Any, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
    """Ask the vector `filter_nodes` about a single node."""
    nodes = node.alone()
    answer = plugin.filter_nodes(state, pod, nodes)
    return None if answer is None else first_refusal(answer)


def first_refusal(refusals: Refusals) -> Status | None:
    """The status of the only node of a one-node answer."""
    hits = [entry for entry in refusals.entries if entry.mask[0]]
    if not hits:
        return None
    reasons = tuple(text for text in (entry.text(0) for entry in hits) if text)
    return Status(gravest(entry.code for entry in hits), reasons)


_GRAVITY = {
    Code.ERROR: 4,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: 3,
    Code.UNSCHEDULABLE: 2,
    Code.PENDING: 1,
}


def gravest(codes: Iterable[Code]) -> Code:
    """The code that wins when a node is refused for several reasons."""
    return max(codes, key=lambda code: _GRAVITY.get(code, 5))


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
        except Exception as error:
            raise NodeFailure(node.name, error) from error
    return out


_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def whole(value: Any) -> int:
    """A score as int64: a finite int or float with its fraction cut off; bool and text are no scores."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"expected a number as score, got {value!r}")
    if not isinstance(value, int) and not np.isfinite(value):
        raise ValueError(f"a score must be finite, got {value!r}")
    cut = int(value)
    if not _SMALLEST <= cut <= _LARGEST:
        raise ValueError("a score must fit into 64 bits")
    return cut


def lower_score(plugin: Any, state: CycleState, pod: Pod, node: NodeView) -> float | Status:
    """Ask the vector `score_nodes` about a single node."""
    answer = plugin.score_nodes(state, pod, node.alone())
    return answer if isinstance(answer, Status) else whole(answer[0])


def fill_scores(
    score_nodes: Callable[[CycleState, Pod, Nodes], Any],
    state: CycleState,
    pod: Pod,
    nodes: Nodes,
    out: IntArray,
) -> Status | None:
    """Scores that come as an array, written into `out`: check, cut fractions, copy."""
    answer = score_nodes(state, pod, nodes)
    if isinstance(answer, Status):
        return answer
    write_scores(answer, nodes, out)
    return None


def write_scores(answer: Any, nodes: Nodes, out: IntArray) -> None:
    """Copy an array of scores into `out`; fractions are cut off, NaN and infinity are refused."""
    if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "iuf":
        raise TypeError(f"expected an array of int64 or float64 scores, got {answer!r}")
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
            raise NodeFailure(
                nodes.names[int(np.argmax(outside))], ValueError("a score must fit into 64 bits")
            )
    out[:] = answer  # numpy cuts fractions towards zero


def lift_normalize(plugin: Any, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
    """Hand the scores to the scalar `normalize_scores` by node name and read them back."""
    named = dict(zip(nodes.names, scores.tolist(), strict=True))
    answer = plugin.normalize_scores(state, pod, named)
    if isinstance(answer, Status):
        return answer
    if not isinstance(answer, Mapping):
        raise TypeError(f"normalize_scores() must return a mapping of node names to scores, got {answer!r}")
    unknown = sorted(set(answer) - set(named))
    if unknown:
        raise ValueError(
            f"normalize_scores() returned a score for {unknown[0]!r}, which is not among the nodes"
        )
    out: IntArray = np.empty(len(nodes), dtype=np.int64)
    for index, name in enumerate(nodes.names):
        if name not in answer:
            raise NodeFailure(name, ValueError("normalize_scores() returned no score for this node"))
        try:
            out[index] = whole(answer[name])
        except (TypeError, ValueError) as error:
            raise NodeFailure(name, error) from error
    return out


def normalize_feasible(
    plugin: Any, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes, feasible: BoolArray
) -> IntArray:
    """`normalize_rows` from `normalize_nodes`: gather the feasible scores, and put them back."""
    some = nodes.where(feasible)
    after: IntArray = np.zeros(len(some), dtype=np.int64)
    write_scores(plugin.normalize_nodes(state, pod, scores[feasible], some), some, after)
    rows: IntArray = np.zeros(len(nodes), dtype=np.int64)
    rows[feasible] = after
    return rows
