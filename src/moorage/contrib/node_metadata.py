"""NodeMetadata: prefer nodes by a number or a time in one of their labels or annotations. Follows
pkg/nodemetadata/node_metadata.go of scheduler-plugins (KEP-942).

Nodes without a valid value score 0, the others 1 to 100."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, required, unsupported
from moorage.contrib import go_time
from moorage.contrib.normalizing import min_max
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import IntArray, Nodes, NodeView
from moorage.framework.optional import ReusablePlugin, VectorScorePlugin
from moorage.framework.status import MAX_NODE_SCORE

LABEL, ANNOTATION = "Label", "Annotation"
NUMBER, TIMESTAMP = "Number", "Timestamp"
STRATEGIES = {NUMBER: ("Highest", "Lowest"), TIMESTAMP: ("Newest", "Oldest")}
UNKNOWN = -(2**63)
"""The raw score of a node without a value."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class NodeMetadataArgs(PluginArgs):
    """The label or annotation, its format, and which nodes are preferred."""

    metadata_key: str = ""
    metadata_source: str = ""
    metadata_type: str = ""
    scoring_strategy: str = ""
    timestamp_format: str = go_time.RFC3339
    """A layout of Go's `time` package."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if not self.metadata_key:
            yield required(child(path, "metadataKey"), "the name of a label or an annotation")
        if self.metadata_source not in (LABEL, ANNOTATION):
            yield unsupported(child(path, "metadataSource"), self.metadata_source, (LABEL, ANNOTATION))
        if self.metadata_type not in STRATEGIES:
            yield unsupported(child(path, "metadataType"), self.metadata_type, tuple(STRATEGIES))
        elif self.scoring_strategy not in STRATEGIES[self.metadata_type]:
            where, fitting = child(path, "scoringStrategy"), STRATEGIES[self.metadata_type]
            yield unsupported(where, self.scoring_strategy, fitting)
        if self.metadata_type == TIMESTAMP and (fault := go_time.unreadable(self.timestamp_format)):
            yield invalid(child(path, "timestampFormat"), self.timestamp_format, fault)


class NodeMetadata(VectorScorePlugin, ReusablePlugin):
    name = "NodeMetadata"
    Args = NodeMetadataArgs
    few_signs = True

    def __init__(self, args: NodeMetadataArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._descending = args.scoring_strategy in ("Lowest", "Oldest")

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        return nodes.node_column((self.name, self.args), self._values)

    def _values(self, nodes: Nodes) -> IntArray:
        return np.array([self._value(node) for node in nodes], dtype=np.int64)

    def _value(self, node: NodeView) -> int:
        """Return the value. A time counts itself, not as an age, so that a score is valid until the node changes."""
        args: NodeMetadataArgs = self.args
        source = node.labels if args.metadata_source == LABEL else node.node.annotations
        text = source.get(args.metadata_key, "")
        read = number(text) if args.metadata_type == NUMBER else go_time.parse(args.timestamp_format, text)
        if read is None or abs(read) >= -UNKNOWN:
            return UNKNOWN
        return -int(read) if self._descending else int(read)

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        known = scores != UNKNOWN
        normalized = np.zeros_like(scores)
        normalized[known] = 1 + min_max(scores[known], MAX_NODE_SCORE - 1)
        return normalized

    def sign(self, pod: Pod) -> Hashable:
        return ()

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


def number(text: str) -> float | None:
    """Parse a decimal number; None for anything else, such as inf, which cannot be ranked."""
    return float(text) if _NUMBER.fullmatch(text) else None
