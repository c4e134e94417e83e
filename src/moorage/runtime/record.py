"""The decision record: what one attempt decided, and why.

Types only: the runtime and the cycle fill them, `scheduler.records` keeps them. The FailedScheduling message,
`explain`, the UI and the simulator all read the same record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.runtime.top_scores import KeptTop, NodeScore, TopScores
from moorage.state.node_listing import NodeEpoch

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"
"""Results of an attempt, spelled as in the metrics."""


class RefusalCount(NamedTuple):
    """The number of nodes that one plugin rejected for one set of reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]
    nodes: int


class ExtenderVerdict(NamedTuple):
    """The result of one extender's filter call."""

    extender: str
    removed_nodes: int
    error: str = ""
    """Why it did not count, if it is ignorable; why the attempt failed, if it is not."""


class Diagnosis(NamedTuple):
    """What an attempt found out about the nodes. Attempts with equal findings share one."""

    total_nodes: int = 0
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    refusals: tuple[RefusalCount, ...] = ()
    """In an attempt from a baseline also those of earlier pods that hit no node any more."""
    reason_ids: npt.NDArray[np.unsignedinteger[Any]] | None = None
    """Row → index into `refusals` plus one; 0: not refused."""
    epoch: NodeEpoch | None = None
    size: int = 0
    """Roughly how many bytes this keeps alive, without the epoch."""


def size_of(refusals: Sequence[RefusalCount], reason_ids: npt.NDArray[Any] | None) -> int:
    """Return roughly how many bytes a diagnosis with these rejections keeps alive."""
    ids = reason_ids.nbytes if reason_ids is not None else 0
    return ids + sum(100 + sum(60 + len(reason) for reason in refusal.reasons) for refusal in refusals)


NOTHING_SEEN = Diagnosis()

SMALL_RECORD = 600
"""Bytes of a record that has neither a message nor scores."""


class DecisionRecord(msgspec.Struct, gc=False):
    """One attempt to schedule one pod. It is in no reference cycle, so the garbage collector need not track the
    thousands of records that are kept."""

    pod: str
    uid: str
    profile: str
    attempt: int
    """1 for the pod's first."""
    started: float
    """Wall clock, seconds since the epoch."""
    sequence: int = 0
    """Position among all attempts of the process; set by the ring that keeps it."""
    kept_bytes: int = 0
    """The size that the ring charges for it."""
    duration: float = 0.0
    """Seconds from pop to assume or refusal."""
    result: str = ""
    message: str = ""
    """The FailedScheduling message or the error; empty on success."""
    diagnosis: Diagnosis = NOTHING_SEEN
    """What the attempt found out about the nodes."""
    pre_filter: str = ""
    """PreFilter's message when it refused the pod as a whole."""
    post_filter: str = ""
    """The message of PostFilter."""
    extenders: tuple[ExtenderVerdict, ...] = ()
    """In the order in which they were asked; the nodes are among the refusals of the plugin "Extender"."""
    top: TopScores | KeptTop | None = None
    """The scores of the best nodes, packed; read them as `scores`."""
    node: str = ""
    """The chosen node."""
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    """Pods preempted for this one."""
    woken_by: str = ""
    """The event that brought the pod back to the active queue."""
    woken_hint: str = ""
    """The plugin whose hint said so, or that activated the pod."""
    plugin: str = ""
    """The plugin that failed or refused, where a single one did."""

    @property
    def margin(self) -> int | None:
        """Return the total of the winner minus that of the second best; None without a second, or without scores."""
        totals = self.top.totals if self.top is not None else ()
        return totals[0] - totals[1] if len(totals) > 1 else None

    @property
    def total_nodes(self) -> int:
        return self.diagnosis.total_nodes

    @property
    def evaluated_nodes(self) -> int:
        return self.diagnosis.evaluated_nodes

    @property
    def feasible_nodes(self) -> int:
        return self.diagnosis.feasible_nodes

    @property
    def refusals(self) -> tuple[RefusalCount, ...]:
        return self.diagnosis.refusals

    @property
    def node_names(self) -> Sequence[str]:
        """Return the node name of each row; empty if no node was considered."""
        epoch = self.diagnosis.epoch
        return epoch.names if epoch is not None else ()

    @property
    def scores(self) -> tuple[NodeScore, ...]:
        """Return the best ten nodes, the winner first; empty if nothing was scored."""
        names = self.node_names
        return self.top.by_node(names) if self.top is not None and names else ()

    def refusal_of(self, node: str) -> RefusalCount | None:
        """Return why `node` was rejected; None if it was not, or this record does not know it."""
        names, ids = self.node_names, self.diagnosis.reason_ids
        if ids is None or node not in names:
            return None
        found = int(ids[list(names).index(node)])
        return self.refusals[found - 1] if found else None

    def refused_nodes(self, index: int, limit: int) -> list[str]:
        """Return the names of the nodes that `refusals[index]` hit, at most `limit`."""
        names, ids = self.node_names, self.diagnosis.reason_ids
        rows = np.flatnonzero(ids == index + 1)[:limit].tolist() if ids is not None and names else []
        return [names[row] for row in rows]

    @property
    def size(self) -> int:
        """Return roughly how many bytes this record keeps alive, without the diagnosis, which many records usually
        share."""
        size = SMALL_RECORD + len(self.message)
        if self.top is not None:
            size += self.top.nbytes
        if self.extenders:
            size += sum(200 + len(verdict.error) for verdict in self.extenders)
        return size

    def refused(self, plugin: str, after: str, limit: int) -> list[tuple[str, RefusalCount]] | None:
        """Return at most `limit` rejected nodes with reasons, optionally of one plugin, optionally those after the node
        `after`. None if this record does not know that node."""
        names, ids = self.node_names, self.diagnosis.reason_ids
        if after and after not in names:
            return None
        if ids is None or not names:
            return []
        wanted = [0, *(not plugin or refusal.plugin == plugin for refusal in self.refusals)]
        rows = np.flatnonzero(np.array(wanted, dtype=bool)[ids])
        rows = rows[rows > list(names).index(after)] if after else rows
        return [(names[row], self.refusals[int(ids[row]) - 1]) for row in rows[:limit].tolist()]

    def outline(self) -> dict[str, Any]:
        """Return the JSON of this attempt for a list of attempts."""
        return {
            "pod": self.pod,
            "uid": self.uid,
            "profile": self.profile,
            "attempt": self.attempt,
            "sequence": self.sequence,
            "started": self.started,
            "durationSeconds": self.duration,
            "result": self.result,
            "message": self.message,
            "nodes": {"total": self.total_nodes, "evaluated": self.evaluated_nodes, "feasible": self.feasible_nodes},
            "node": self.node,
            "nominatedNode": self.nominated_node,
            "victims": list(self.victims),
            "wokenBy": self.woken_by,
            "wokenHint": self.woken_hint,
            "plugin": self.plugin,
        }

    def to_dict(self, names: int = 100) -> dict[str, Any]:
        """Return the full JSON, with at most this many node names per rejection."""
        return {
            **self.outline(),
            "preFilter": self.pre_filter,
            "postFilter": self.post_filter,
            "refusals": [
                {
                    "plugin": r.plugin,
                    "code": r.code,
                    "reasons": list(r.reasons),
                    "nodes": r.nodes,
                    "nodeNames": self.refused_nodes(index, names),
                }
                for index, r in enumerate(self.refusals)
                if r.nodes
            ],
            "extenders": [
                {"extender": e.extender, "removedNodes": e.removed_nodes, "error": e.error} for e in self.extenders
            ],
            "scores": [
                {
                    "node": entry.node,
                    "total": entry.total,
                    "plugins": [
                        {"plugin": p.plugin, "raw": p.raw, "normalized": p.normalized, "weighted": p.weighted}
                        for p in entry.plugins
                    ],
                }
                for entry in self.scores
            ],
            "margin": self.margin,
        }
