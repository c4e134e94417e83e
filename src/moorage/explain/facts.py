"""Facts that decide about a pod, as sentences: those of the plugins that refuse it, and those about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from moorage.api.failures import failure_text, is_interruption
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.explain.judging import Judge, Judgement
from moorage.explain.other_remedies import allowed_to_preempt
from moorage.explain.standing import PodStanding, pods_on
from moorage.explain.trying import violated_budgets
from moorage.extender.asking import AskedExtender
from moorage.framework.optional import ExplainingPlugin

MAX_FACTS = 6
"""Facts of one plugin that are shown."""
MAX_LENGTH = 600
"""Characters of a fact: tenants choose names and values."""


async def all_facts(
    judge: Judge, judgement: Judgement, state: PodStanding, leaving: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the facts of the state, then those about the pod on this cluster; each once."""
    found = list(state.facts)
    pod = judgement.pod
    if state.state == "nominated":
        found += _budgets(judge, pod)
    elif not judgement.feasible:
        found += [*_plugin_facts(judgement)]
        result = await allowed_to_preempt(judge, judgement)
        if result is not None:
            victims = ", ".join(victim.key for victim in result.victims[:MAX_FACTS])
            found.append(
                f"The pod could preempt {victims} on {result.nominated_node}, but its preemptionPolicy is Never."
            )
    found += _leaving_facts(judgement, leaving)
    found += extender_facts(judge)
    return tuple(dict.fromkeys(found))


def extender_facts(judge: Judge) -> list[str]:
    """Name the extenders that failed. The answer lacks what they would have said."""
    extenders = judge.engine.services.extenders
    return [
        f"An extender failed: {each.problem}." for each in extenders if isinstance(each, AskedExtender) and each.problem
    ]


def _plugin_facts(judgement: Judgement) -> Iterator[str]:
    """Yield what the plugins state that decide: they refuse a node that nothing else refuses, or more than half of all
    nodes. An exception of a plugin becomes a fact that names it."""
    per_row = judgement.refusals_per_row()
    for verdict in judgement.verdicts:
        plugin, refused = verdict.plugin, verdict.rows
        decides = (per_row[refused] == 1).any() or 2 * np.count_nonzero(refused) > len(judgement.nodes)
        if not isinstance(plugin, ExplainingPlugin) or not decides:
            continue
        try:
            for fact in itertools.islice(
                plugin.facts(judgement.attempt.state, judgement.pod, judgement.nodes), MAX_FACTS
            ):
                yield _checked(fact)
        except BaseException as error:
            if is_interruption(error):
                raise
            yield f"{plugin.name} has no facts because it failed: {failure_text(error)}"


def _checked(fact: object) -> str:
    if not isinstance(fact, str):
        raise TypeError(f"facts() must yield str, got {fact!r}"[:MAX_LENGTH])
    return fact if len(fact) <= MAX_LENGTH else f"{fact[:MAX_LENGTH]}…"


def _leaving_facts(judgement: Judgement, leaving: Mapping[str, str]) -> Iterator[str]:
    """Yield the nodes that are feasible although they are being deleted."""
    for name, since in itertools.islice(leaving.items(), MAX_FACTS):
        row = judgement.nodes.columns.row_of(name)
        if row >= 0 and judgement.feasible and judgement.attempt.ok[row]:
            yield f"Node {name} is feasible, but it has been terminating since {since}."


def _budgets(judge: Judge, pod: Pod) -> Iterator[str]:
    """Yield the disruption budgets that the victims of the pod's nomination violate."""
    pods = pods_on(judge.engine.stores.lister(PODS).list(), pod.nominated_node_name)
    leaving = [other for other in pods if other.is_terminating and other.priority < pod.priority]
    for key in violated_budgets(judge, leaving):
        yield f"Preemption violates the disruption budget {key}, which allows no disruption."
