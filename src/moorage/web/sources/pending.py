"""The pending pods of a cluster that was read, each with who refuses it.

Pods of one template get equal answers, so one of each is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.api.times import parse_time
from moorage.explain.loaded import LoadedCluster
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.reuse.signatures import Signer
from moorage.scheduler.failing import fit_error
from moorage.scheduler.queue_hooks import run_pre_enqueue
from moorage.web.source import Json, QueueQuery

MOST_JUDGED = 200
"""Templates that are judged for the queue. Pods of others say what their PodScheduled condition says."""
ACTIVE, PARKED, GATED = "active", "parked", "gated"


@dataclass(frozen=True, slots=True)
class Judged:
    """What is said of all pods of one template."""

    place: str
    why: str
    plugins: tuple[str, ...] = ()
    statuses: NodeStatuses | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod without a node."""

    pod: Pod
    judged: Judged

    @property
    def reason(self) -> str:
        return ",".join(self.judged.plugins)

    def to_dict(self) -> Json:
        pod = self.pod
        return {
            "pod": pod.key,
            "uid": pod.uid,
            "profile": pod.scheduler_name,
            "place": self.judged.place,
            "why": self.judged.why,
            "plugins": list(self.judged.plugins),
            "since": parse_time(pod.metadata.creation_timestamp),
            "priority": pod.priority,
            "nominatedNode": pod.status.nominated_node_name or "",
        }


class PendingPods:
    """All of them, by name."""

    def __init__(self, pods: list[Pending]) -> None:
        self.pods = pods
        self._places = {ACTIVE: 0, PARKED: 0, GATED: 0, **Counter(each.judged.place for each in pods)}
        groups = Counter((each.judged.place, each.reason) for each in pods)
        ordered = sorted(groups.items(), key=lambda group: (-group[1], group[0]))
        self._groups = [{"place": where, "reason": why, "pods": count} for (where, why), count in ordered]

    def counts(self) -> dict[str, int]:
        return dict(self._places)

    def page(self, query: QueueQuery) -> Json:
        found = list(self._matching(query))
        shown = found[: query.limit]
        return {
            "places": self._places,
            "groups": self._groups,
            "pods": [each.to_dict() for each in shown],
            "after": shown[-1].pod.key if len(found) > len(shown) else None,
        }

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

    def refused_by(self, node: str) -> list[Json]:
        """Which templates the node does not take: their first pod, how many there are, and why."""
        firsts: dict[int, Json] = {}
        for each in self.pods:
            statuses = each.judged.statuses
            if statuses is None or statuses.get(node).is_success:
                continue
            known = firsts.get(id(each.judged))
            if known is not None:
                known["pods"] += 1
                continue
            status = statuses.get(node)
            firsts[id(each.judged)] = {
                "pod": each.pod.key,
                "pods": 1,
                "plugin": status.plugin,
                "reasons": list(status.reasons),
            }
        return list(firsts.values())


async def judge_pending(loaded: LoadedCluster) -> PendingPods:
    """Every pod of the cluster that waits for a node."""
    signers: dict[str, Signer] = {}
    by_signature: dict[Hashable, Judged] = {}
    found = []
    for pod in sorted(_waiting(loaded), key=lambda pod: pod.key):
        judge = loaded.judge(pod)
        profile = judge.profile
        held_back = run_pre_enqueue(profile, pod)
        if held_back is not None:
            judged = Judged(GATED, "; ".join(held_back.reasons), (held_back.plugin,))
            found.append(Pending(pod, judged))
            continue
        signer = signers.setdefault(profile.name, Signer(profile))
        signature = signer.signature(pod)
        if signature not in by_signature and len(by_signature) < MOST_JUDGED:
            by_signature[signature] = _judged(await judge.find(pod))
        found.append(Pending(pod, by_signature.get(signature) or _by_condition(pod)))
    return PendingPods(found)


def _waiting(loaded: LoadedCluster) -> Iterator[Pod]:
    for pod in loaded.engine.stores.lister(PODS).list():
        if not (pod.is_assigned or pod.is_terminal or pod.is_terminating):
            yield pod


def _judged(attempt: Any) -> Judged:
    total = len(attempt.nodes)
    if attempt.feasible:
        return Judged(ACTIVE, f"{attempt.feasible} of {total} nodes would take it now", (), attempt.statuses)
    refused, pending = attempt.statuses.rejectors()
    message = fit_error(total, pre_filter=attempt.pre_filter_message, reasons=attempt.statuses.histogram())
    return Judged(PARKED, message, tuple(sorted(refused | pending)), attempt.statuses)


def _by_condition(pod: Pod) -> Judged:
    said = next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")
    return Judged(PARKED, said or "Not judged yet: open the pod to see why it waits.")
