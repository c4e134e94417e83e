"""The pending pods of a cluster that was read, with the plugins that refuse them.

Pods of one template get equal answers, so only one of each template is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.api.times import parse_time
from moorage.app.offline import AnyEngine
from moorage.endpoints.answers import PendingPod, QueueAnswer, QueueGroup, reason_of
from moorage.endpoints.queries import QueueQuery
from moorage.explain.judging import Judge
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.reuse.signatures import Signer
from moorage.scheduler.failing import fit_error
from moorage.scheduler.queue_hooks import run_pre_enqueue
from moorage.web.source import RefusedPods

MAX_JUDGED = 200
"""Number of templates that are judged. Other pods show the message of their PodScheduled condition."""
ACTIVE, UNSCHEDULABLE, GATED = "active", "unschedulable", "gated"


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer for all pods of one template."""

    place: str
    why: str
    plugins: tuple[str, ...] = ()
    statuses: NodeStatuses | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A pending pod."""

    pod: Pod
    judged: Judged

    @property
    def reason(self) -> str:
        return reason_of(self.judged.plugins)

    def answer(self) -> PendingPod:
        pod = self.pod
        return PendingPod(
            pod=pod.key,
            uid=pod.uid,
            profile=pod.scheduler_name,
            place=self.judged.place,
            why=self.judged.why,
            plugins=self.judged.plugins,
            since=parse_time(pod.metadata.creation_timestamp),
            priority=pod.priority,
            nominated_node=pod.status.nominated_node_name or "",
        )


class PendingPods:
    """All pending pods, sorted by name."""

    def __init__(self, pods: list[Pending]) -> None:
        self.pods = pods
        self._places = {ACTIVE: 0, UNSCHEDULABLE: 0, GATED: 0, **Counter(each.judged.place for each in pods)}
        groups = Counter((each.judged.place, each.reason) for each in pods)
        ordered = sorted(groups.items(), key=lambda group: (-group[1], group[0]))
        self._groups = [QueueGroup(place=where, reason=why, pods=count) for (where, why), count in ordered]

    def counts(self) -> dict[str, int]:
        return dict(self._places)

    def page(self, query: QueueQuery) -> QueueAnswer:
        found = list(self._matching(query))
        shown = found[: query.limit]
        return QueueAnswer(
            places=self._places,
            groups=self._groups,
            pods=[each.answer() for each in shown],
            after=shown[-1].pod.key if len(found) > len(shown) else None,
        )

    def _matching(self, query: QueueQuery) -> Iterator[Pending]:
        number = 0
        for each in self.pods:
            key = each.pod.key
            if (
                key > query.after
                and query.search in key
                and query.place in ("", each.judged.place)
                and query.reason in ("", each.reason)
            ):
                yield each
                number += 1
                if number > query.limit:
                    return

    def refused_by(self, node: str) -> list[RefusedPods]:
        """Return the templates that the node refuses: the first pod, the number of pods, and the reasons."""
        refused: dict[int, list[Pending]] = {}
        for each in self.pods:
            statuses = each.judged.statuses
            if statuses is not None and not statuses.get(node).is_success:
                refused.setdefault(id(each.judged), []).append(each)
        found = []
        for alike in refused.values():
            assert alike[0].judged.statuses is not None
            status = alike[0].judged.statuses.get(node)
            found.append(RefusedPods(alike[0].pod.key, len(alike), status.plugin, status.reasons))
        return found


async def judge_pending(engine: AnyEngine) -> PendingPods:
    """Judge every pending pod of the cluster."""
    signers: dict[str, Signer] = {}
    by_signature: dict[Hashable, Judged] = {}
    found = []
    for pod in sorted(_waiting(engine), key=lambda pod: pod.key):
        judge = Judge.of(engine, pod)
        profile = judge.profile
        held_back = run_pre_enqueue(profile, pod)
        if held_back is not None:
            judged = Judged(GATED, "; ".join(held_back.reasons), (held_back.plugin,))
            found.append(Pending(pod, judged))
            continue
        signer = signers.setdefault(profile.name, Signer(profile))
        signature = signer.signature(pod)
        if signature not in by_signature and len(by_signature) < MAX_JUDGED:
            by_signature[signature] = _judged(await judge.find(pod))
        found.append(Pending(pod, by_signature.get(signature) or _by_condition(pod)))
    return PendingPods(found)


def _waiting(engine: AnyEngine) -> Iterator[Pod]:
    for pod in engine.stores.lister(PODS).list():
        if not (pod.is_assigned or pod.is_terminal or pod.is_terminating):
            yield pod


def _judged(attempt: Any) -> Judged:
    total = len(attempt.nodes)
    if attempt.feasible:
        return Judged(ACTIVE, f"{attempt.feasible} of {total} nodes are feasible now", (), attempt.statuses)
    refused, pending = attempt.statuses.rejectors()
    message = fit_error(total, pre_filter=attempt.pre_filter_message, reasons=attempt.statuses.histogram())
    return Judged(UNSCHEDULABLE, message, tuple(sorted(refused | pending)), attempt.statuses)


def _by_condition(pod: Pod) -> Judged:
    said = next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")
    return Judged(UNSCHEDULABLE, said or "Not judged yet: open the pod to see why it is pending.")
