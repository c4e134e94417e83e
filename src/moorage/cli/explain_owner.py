"""`moorage explain deployment/NAME`: which pods of a workload exist, why others do not, and which are pending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from moorage.api.errors import Forbidden
from moorage.api.resources import PODS
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.app.gc_tuning import gc_paused
from moorage.app.offline import QuestionEngine, question_engine
from moorage.cli.options import read
from moorage.cli.printing import Form, line, print_data
from moorage.explain.explanation import Explanation, explain
from moorage.explain.judging import Judge
from moorage.explain.owners import MAX_GROUPS, OwnerExplanation, OwnerObjects, explain_owner, recorded_reason
from moorage.explain.reading_owners import from_server, from_snapshot, may_not, pod_from_server
from moorage.extender.asking import asked_extenders
from moorage.framework.ports import Extender

MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class OwnerQuestion:
    """What was asked, and where to look."""

    kind: str
    name: str
    namespace: str
    kubeconfig: str
    context: str
    snapshot: Path | None
    profile: str
    remedies: int


def answer(question: OwnerQuestion, own: Configuration) -> OwnerExplanation:
    """Explain the owner, and one pod of each group of pending pods as far as the cluster may be read."""
    with asked_extenders(own.config.extenders, SystemClock()) as extenders:
        return _answer(question, own, extenders)


def _answer(question: OwnerQuestion, own: Configuration, extenders: Sequence[Extender]) -> OwnerExplanation:
    engine, namespace, gap = _engine(question, own, extenders)
    if question.snapshot is not None:
        pods = () if engine is None else engine.stores.lister(PODS).list()
        objects = from_snapshot(question.kind, question.name, namespace, question.snapshot, pods)
    else:
        objects = _from_server(question)
    found = explain_owner(objects)
    if gap and found.groups:
        found.facts.append(gap)
    if engine is None:
        return found
    for group in found.groups[:MAX_GROUPS]:
        pod = group.pods[0]
        judge = Judge.of(engine, pod, question.profile)
        group.explanation = asyncio.run(
            explain(judge, pod, remedies=question.remedies, any_scheduler=bool(question.profile))
        )
    return found


def _from_server(question: OwnerQuestion) -> OwnerObjects:
    return asyncio.run(
        from_server(question.kind, question.name, question.namespace, question.kubeconfig, question.context)
    )


def _engine(
    question: OwnerQuestion, own: Configuration, extenders: Sequence[Extender]
) -> tuple[QuestionEngine | None, str, str]:
    """Return the cluster in memory, the namespace, and what is missing if the cluster may not be read."""
    try:
        with gc_paused():
            cluster = read(own, question.kubeconfig, question.context, question.snapshot)
            engine = question_engine(own, cluster.changes(), extenders=extenders)
    except Forbidden as error:
        return None, question.namespace, cluster_gap(error)
    return engine, question.namespace or cluster.namespace, ""


def cluster_gap(error: Forbidden) -> str:
    """Return the sentence for a user who may not read the nodes or pods of the whole cluster."""
    plural = error.status.details.kind if error.status.details is not None else ""
    so = "the nodes cannot be judged here, and the reason is what the scheduler wrote"
    return may_not(plural or "nodes", "in this cluster", so)


def limited(name: str, namespace: str, kubeconfig: str, context: str, error: Forbidden, output: Form) -> bool:
    """Print what the status of a pod says, for a user who may not read the cluster. Return whether it has a node."""
    pod = asyncio.run(pod_from_server(name, namespace, kubeconfig, context))
    assigned = pod.spec.node_name
    headline = f"{pod.key} is placed on {assigned}." if assigned else f"{pod.key} is pending: {recorded_reason(pod)}"
    gap = cluster_gap(error)
    if output is Form.TABLE:
        line(headline, style="bold")
        line(gap)
    else:
        state = "placed" if assigned else "gated" if pod.is_gated else "pending"
        print_data({"pod": pod.key, "state": state, "headline": headline, "facts": [gap]}, output)
    return bool(assigned)


def show(found: OwnerExplanation, show_pod: Callable[[Explanation], None], output: Form) -> None:
    """Print the answer for people or for programs."""
    if output is not Form.TABLE:
        print_data(found.to_dict(), output)
        return
    line(found.headline, style="bold")
    for fact in found.facts:
        line(fact)
    if found.remedies:
        line("\nWhat would help:", style="bold")
        for remedy in found.remedies:
            line(f"  - {remedy.text}.")
            for part in remedy.command.splitlines():
                line(f"      {part}")
    for group in found.groups:
        names = ", ".join(pod.name for pod in group.pods[:MAX_NAMED])
        more = f" and {len(group.pods) - MAX_NAMED} more" if len(group.pods) > MAX_NAMED else ""
        number = "1 pod is" if len(group.pods) == 1 else f"{len(group.pods)} pods are"
        line(f"\n{number} pending: {names}{more}", style="bold")
        if group.explanation is None:
            line(group.reason)
        else:
            show_pod(group.explanation)
