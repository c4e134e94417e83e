"""The views of decision records: those of one pod, the newest of all pods, and a single one in full.

The scheduler's loop copies the ring of records. Records do not change, so they are searched and encoded on
the endpoints' thread.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.scheduler import Scheduler
from moorage.endpoints.answers import (
    AttemptAnswer,
    AttemptDetails,
    AttemptsAnswer,
    AttemptSummary,
    PendingPod,
    RecordsAnswer,
)
from moorage.endpoints.loop_bridge import LoopBridge
from moorage.endpoints.queries import AttemptQuery, AttemptsQuery, Reason, RecordsQuery
from moorage.endpoints.v1 import queue
from moorage.runtime.record import DecisionRecord
from moorage.scheduler.records import RecordRing

MAX_KNOWN_PODS = 16
"""Pods whose records are remembered; the pod that was not asked about for the longest time is dropped."""


class RecordsView:
    """Remembers the records of pods: open browsers ask again and again, and then only the new records are
    searched, of the tens of thousands in the ring."""

    def __init__(self, scheduler: Scheduler, bridge: LoopBridge) -> None:
        self._scheduler = scheduler
        self._bridge = bridge
        self._known: dict[str, tuple[int, list[DecisionRecord]]] = {}
        """Pod → the last sequence that was searched, and the pod's records up to it."""

    async def of_pod(self, query: RecordsQuery) -> RecordsAnswer:
        """Return the place of a pod and its records, oldest first."""
        last, known = self._known.pop(query.pod, (0, []))
        pod, waiting, ring, first = await self._bridge.call(lambda: self._look(query.pod, last))
        found = [record for record in known if record.sequence >= first] + ring.of(query.pod)
        self._remember(query.pod, ring.last_sequence, found)
        kept = [record for record in found if record.sequence < query.before]
        shown = kept[-query.limit :]
        return RecordsAnswer(
            pod=query.pod,
            exists=pod is not None,
            node="" if pod is None else pod.spec.node_name,
            waiting=waiting,
            records=[details(record, query.nodes) for record in shown],
            before=shown[0].sequence if len(kept) > len(shown) else None,
        )

    def _look(self, key: str, last: int) -> tuple[Pod | None, PendingPod | None, RecordRing, int]:
        pod = self._scheduler.informers.informers[PODS].objects.get(key)
        waiting = queue.describe(self._scheduler, pod.uid) if pod is not None else None
        records = self._scheduler.records
        return pod, waiting, records.copy(last), records.first_sequence

    def _remember(self, pod: str, last: int, found: list[DecisionRecord]) -> None:
        while len(self._known) >= MAX_KNOWN_PODS:
            del self._known[next(iter(self._known))]
        self._known[pod] = (last, found)

    async def attempts(self, query: AttemptsQuery) -> AttemptsAnswer:
        """Return the attempts of all pods, newest first."""
        ring = await self._bridge.call(self._scheduler.records.copy)
        wanted = (record for record in ring.newest(query.before) if query.result in ("", record.result))
        found = list(islice(wanted, query.limit + 1))
        shown = found[: query.limit]
        return AttemptsAnswer(
            attempts=[msgspec.convert(record.outline(), AttemptSummary) for record in shown],
            before=shown[-1].sequence if len(found) > len(shown) else None,
        )

    async def attempt(self, query: AttemptQuery, sequence: int) -> AttemptAnswer | Reason:
        """Return one attempt, with a page of the nodes that it rejected."""
        record = await self._bridge.call(lambda: self._scheduler.records.get(sequence))
        if record is None:
            return f"attempt {sequence} is no longer kept; /moorage/v1/attempts lists the attempts that are"
        found = record.refused(query.plugin, query.after, query.limit + 1)
        if found is None:
            return f"after={query.after[:300]}: attempt {sequence} did not see such a node"
        shown = found[: query.limit]
        refused = [{"node": node, **why._asdict()} for node, why in shown]
        after = shown[-1][0] if len(found) > len(shown) else None
        answer = {**record.to_dict(names=0), "refusedNodes": refused, "after": after}
        return msgspec.convert(answer, AttemptAnswer)


def details(record: DecisionRecord, names: int) -> AttemptDetails:
    """Return a record as an answer, with at most `names` node names for each refusal."""
    return msgspec.convert(record.to_dict(names), AttemptDetails)
