"""`moorage explain --server`: the decision records that a running scheduler keeps of a pod, and what would help it.

The records come from the scheduler. Remedies are tried on a copy of the cluster as the scheduler sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.api.times import format_time
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.app.gc_tuning import gc_paused
from moorage.app.offline import question_engine
from moorage.cli.options import RunningScheduler, configured_as, read
from moorage.cli.printing import Form, console, fail, line, print_data, printable
from moorage.endpoints import client
from moorage.endpoints.answers import AttemptDetails, PendingPod, RecordsAnswer
from moorage.endpoints.queries import ROOT, RecordsQuery
from moorage.explain import explanation
from moorage.explain.explanation import Explanation, remedy_dict
from moorage.explain.judging import Judge, find_pod
from moorage.explain.trying import Remedy
from moorage.extender.asking import asked_extenders
from moorage.runtime.record import UNSCHEDULABLE
from moorage.runtime.top_scores import NodeScore

ATTEMPTS = 10
"""The number of attempts to show, the newest."""
NAMES = 3
"""The number of node names for each refusal."""


def explain(
    scheduler: RunningScheduler, name: str, namespace: str, form: Form, own: Configuration | None, remedies: int
) -> bool:
    """Print the records of a pod, and for a rejected one at most this many remedies. They are tried with the
    configuration `own`, or with that of the scheduler. Returns whether the scheduler rejected the pod."""
    try:
        answer = asyncio.run(_ask(scheduler, name, namespace))
    except MoorageError as error:
        fail(str(error))
    if answer.waiting is None and not answer.records:
        fail(
            f"The scheduler at {scheduler.server} does not know the pod {answer.pod}: it is not pending, "
            "and no attempt is on record. Name its namespace with -n, or ask the replica that leads."
        )
    rejected = answer.waiting is not None and bool(answer.records) and answer.records[-1].result == UNSCHEDULABLE
    found: list[Remedy] = []
    missing = ""
    if rejected and remedies:
        try:
            now = _on_copy(scheduler, answer.pod, own, remedies)
            found = now.remedies
            if now.feasible:
                nodes = f"{now.feasible} of {now.total} nodes are feasible now"
                missing = f"No remedies are needed: {nodes}, and the next attempt may succeed."
        except MoorageError as error:
            missing = f"No remedies are shown, because the cluster cannot be copied: {error}."
    if form is Form.TABLE:
        show(answer)
        show_remedies(found)
        if missing:
            line(f"\n{missing}")
    else:
        tried = [msgspec.to_builtins(remedy_dict(remedy)) for remedy in found]
        print_data({**msgspec.to_builtins(answer), "remedies": tried, "remediesMissing": missing}, form)
    return rejected


def _on_copy(scheduler: RunningScheduler, pod: str, own: Configuration | None, remedies: int) -> Explanation:
    """Explain the pod on a copy of the cluster as the scheduler sees it, with at most this many remedies."""
    configuration = configured_as(own, scheduler)
    with asked_extenders(configuration.config.extenders, SystemClock()) as extenders:
        with gc_paused():
            cluster = read(configuration, "", "", None, scheduler)
            engine = question_engine(configuration, cluster.changes(), extenders=extenders)
        namespace, _, name = pod.partition("/")
        found = find_pod(engine, name, namespace)
        return asyncio.run(explanation.explain(Judge.of(engine, found, ""), found, remedies=remedies))


async def _ask(scheduler: RunningScheduler, name: str, namespace: str) -> RecordsAnswer:
    given = await scheduler.credentials()
    pod = f"{namespace or given.namespace or 'default'}/{name}"
    query = RecordsQuery(pod, limit=ATTEMPTS, nodes=NAMES)
    return await client.ask(given, f"{ROOT}/records", RecordsAnswer, query)


def show(answer: RecordsAnswer) -> None:
    """Print an answer for people."""
    if answer.waiting is not None:
        _show_waiting(answer.waiting)
    elif answer.records[-1].node:
        line(f"{answer.pod}: scheduled on {answer.records[-1].node}", style="bold")
    else:
        line(f"{answer.pod}: no longer pending", style="bold")
    if answer.records:
        line("")
        console().print(_attempts(answer.records))
        _show_record(answer.records[-1])


def _show_waiting(waiting: PendingPod) -> None:
    since = "" if waiting.since is None else f" since {format_time(waiting.since)}"
    line(f"{waiting.pod}: {waiting.place}{since}", style="bold")
    line(waiting.why)
    if waiting.nominated_node:
        line(f"Nominated to {waiting.nominated_node}.")
    if waiting.wakes:
        line("Events that may wake it:")
    for each in waiting.wakes:
        line(f"  {each.plugin}: {', '.join(each.events) or 'none'}")
    if waiting.until is not None:
        line(f"Without such an event it is retried at {format_time(waiting.until)}.")


def _attempts(records: Sequence[AttemptDetails]) -> Table:
    table = Table("attempt", "started", "woken by", "feasible", "result", "node", box=None, pad_edge=False)
    for each in records:
        hint = f" ({each.woken_hint})" if each.woken_hint else ""
        table.add_row(
            str(each.attempt),
            format_time(each.started),
            printable(f"{each.woken_by}{hint}"),
            f"{each.nodes.feasible} of {each.nodes.total}",
            each.result,
            printable(each.node or each.nominated_node),
        )
    return table


def _show_record(record: AttemptDetails) -> None:
    line(f"\nAttempt {record.attempt} (sequence {record.sequence}):", style="bold")
    if record.message:
        line(record.message)
    if record.refusals:
        table = Table("nodes", "plugin", "reason", "examples", box=None, pad_edge=False)
        for each in record.refusals:
            reasons, names = "; ".join(each.reasons), ", ".join(each.node_names)
            table.add_row(str(each.nodes), *map(printable, (each.plugin, reasons, names)))
        console().print(table)
    if record.scores:
        best = msgspec.convert(record.scores, list[NodeScore], from_attributes=True)
        console().print(score_table(best, record.node))
    if record.victims:
        line(f"Preempted on {record.nominated_node}: {', '.join(record.victims)}.")


def show_remedies(remedies: Sequence[Remedy]) -> None:
    """Print what would help a pod, and what to copy for it."""
    if remedies:
        tried = " (each was tried on a copy of this cluster)" if all(remedy.node for remedy in remedies) else ""
        line(f"\nWhat would help{tried}:", style="bold")
    for remedy in remedies:
        line(f"  - {remedy.text[:1].upper()}{remedy.text[1:]}. {_effect(remedy)}".rstrip())
        for part in remedy.command.splitlines():
            line(f"      {part}")


def _effect(remedy: Remedy) -> str:
    if not remedy.node:
        return ""
    if not remedy.nodes:
        return f"Nominates the pod to {remedy.node}."
    if remedy.nodes == 1:
        return f"Makes 1 node feasible ({remedy.node})."
    return f"Makes {remedy.nodes} nodes feasible (best: {remedy.node})."


def score_table(best: Sequence[NodeScore], assigned: str) -> Table:
    """Show the totals of nodes and the plugins that differ; `assigned` is marked with a star."""
    names = list(dict.fromkeys(score.plugin for entry in best for score in entry.plugins))
    points = {name: {_points(entry, name) for entry in best} for name in names}
    moving = [name for name in names if len(points[name]) > 1 or (len(best) == 1 and points[name] != {0})]
    table = Table("node", "total", *moving, box=None, pad_edge=False)
    for entry in best:
        mark = " *" if entry.node == assigned else ""
        shown = [str(_points(entry, name)) for name in moving]
        table.add_row(f"{printable(entry.node)}{mark}", str(entry.total), *shown)
    return table


def _points(entry: NodeScore, plugin: str) -> int:
    return next((score.weighted for score in entry.plugins if score.plugin == plugin), 0)
