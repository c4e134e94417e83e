"""`moorage explain --server`: what a running scheduler has recorded about a pod, as it happened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from moorage.api.errors import MoorageError
from moorage.api.times import format_time
from moorage.cli.options import RunningScheduler
from moorage.cli.printing import Form, console, fail, line, print_data, printable
from moorage.endpoints import client
from moorage.endpoints.v1.routes import ROOT
from moorage.runtime.record import UNSCHEDULABLE, NodeScore

ATTEMPTS = 10
"""The newest, that are shown."""
NAMES = 3
"""Node names for each refusal."""


def explain(scheduler: RunningScheduler, name: str, namespace: str, form: Form) -> bool:
    """Print the records of a pod; whether the scheduler has refused it and it still waits."""
    try:
        answer = asyncio.run(_ask(scheduler, name, namespace))
    except MoorageError as error:
        fail(str(error))
    waiting, records = answer["waiting"], answer["records"]
    if waiting is None and not records:
        fail(
            f"the scheduler at {scheduler.server} knows no attempt of pod {answer['pod']}, and it does not "
            "wait there; name its namespace with -n, or ask the replica that leads"
        )
    if form is Form.TABLE:
        show(answer)
    else:
        print_data(answer, form)
    return waiting is not None and bool(records) and records[-1]["result"] == UNSCHEDULABLE


async def _ask(scheduler: RunningScheduler, name: str, namespace: str) -> dict[str, Any]:
    given = await scheduler.credentials()
    pod = f"{namespace or given.namespace or 'default'}/{name}"
    query = {"pod": pod, "limit": str(ATTEMPTS), "nodes": str(NAMES)}
    return await client.ask(given, f"{ROOT}/records", query)


def show(answer: Mapping[str, Any]) -> None:
    """For people."""
    waiting, records = answer["waiting"], answer["records"]
    if waiting is not None:
        _show_waiting(waiting)
    elif records[-1]["node"]:
        line(f"{answer['pod']} does not wait: it went to {records[-1]['node']}", style="bold")
    else:
        line(f"{answer['pod']} does not wait any more", style="bold")
    if records:
        line("")
        console().print(_attempts(records))
        _show_record(records[-1])


def _show_waiting(waiting: Mapping[str, Any]) -> None:
    line(f"{waiting['pod']} is {waiting['place']} since {format_time(waiting['since'])}", style="bold")
    line(waiting["why"])
    if waiting["nominatedNode"]:
        line(f"It is nominated to {waiting['nominatedNode']}.")
    if waiting["wakes"]:
        line("What may wake it:")
    for each in waiting["wakes"]:
        line(f"  {each['plugin']}: {', '.join(each['events']) or 'nothing'}")
    if waiting["until"] is not None:
        line(f"In any case it moves on at {format_time(waiting['until'])}.")


def _attempts(records: list[dict[str, Any]]) -> Table:
    table = Table("attempt", "started", "woken by", "feasible", "result", "node", box=None, pad_edge=False)
    for each in records:
        hint = f" ({each['wokenHint']})" if each["wokenHint"] else ""
        nodes = each["nodes"]
        table.add_row(
            str(each["attempt"]),
            format_time(each["started"]),
            printable(f"{each['wokenBy']}{hint}"),
            f"{nodes['feasible']} of {nodes['total']}",
            each["result"],
            printable(each["node"] or each["nominatedNode"]),
        )
    return table


def _show_record(record: Mapping[str, Any]) -> None:
    line(f"\nAttempt {record['attempt']}, number {record['sequence']} of the scheduler:", style="bold")
    if record["message"]:
        line(record["message"])
    if record["refusals"]:
        table = Table("nodes", "plugin", "reason", "among them", box=None, pad_edge=False)
        for each in record["refusals"]:
            reasons, names = "; ".join(each["reasons"]), ", ".join(each["nodeNames"])
            table.add_row(str(each["nodes"]), *map(printable, (each["plugin"], reasons, names)))
        console().print(table)
    if record["scores"]:
        best = msgspec.convert(record["scores"], list[NodeScore])
        console().print(score_table(best, record["node"]))
    if record["victims"]:
        line(f"Preempted on {record['nominatedNode']}: {', '.join(record['victims'])}.")


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
