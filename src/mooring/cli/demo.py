"""`mooring demo`: a plugin keeps a pod pending, a label sets it free. All of it in this process."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from mooring.api.events import Event
from mooring.api.node import Node
from mooring.cli import printing, story
from mooring.cli.story import Story, StoryError
from mooring.framework.record import DecisionRecord

PAUSE = 0.6
"""Seconds between two steps at speed 1."""
NONE = "<none>"


def demo(
    speed: Annotated[
        float, typer.Option(min=0, help="How fast to tell it: 2 is twice as fast, 0 makes no pauses.")
    ] = 1.0,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print plain text.")] = False,
) -> None:
    """See a plugin at work: a pod stays pending, and is scheduled when a node gets the right label.

    Runs the real scheduler on a cluster of four nodes that exists in this process only.
    """
    teller = _Teller(printing.console(no_color=no_color), PAUSE / speed if speed else 0.0)
    try:
        asyncio.run(teller.tell())
    except StoryError as error:
        printing.fail(str(error))


class _Teller:
    def __init__(self, console: Console, pause: float) -> None:
        self._console = console
        self._pause = pause
        self._step = 0
        self._story = Story()

    async def tell(self) -> None:
        self._say("Mooring demo: a plugin of your own decides where a pod may run.", "bold")
        self._show_nodes(await self._story.create_nodes())
        await self._show_plugin()
        async with self._story.scheduler:
            await self._show_pending()
            await self._show_label()
            await self._show_events()
        self._say("\nNext: `mooring new my-plugin` makes a package like this one, with a test.", "bold")

    def _show_nodes(self, nodes: Sequence[Node]) -> None:
        self._head("Four nodes, two of which take no pods at the moment")
        rows = [(node.name, _status(node), _taints(node), _labels(node)) for node in nodes]
        self._table(("NAME", "STATUS", "TAINTS", "LABELS"), rows)

    async def _show_plugin(self) -> None:
        await asyncio.sleep(self._pause)
        self._head("A plugin, and the KubeSchedulerConfiguration that enables it")
        self._block(inspect.getsource(story.Sample))
        self._block(story.CONFIG)

    async def _show_pending(self) -> None:
        await asyncio.sleep(self._pause)
        self._head("A pod with `schedulerName: sample-scheduler` arrives, and stays pending")
        pod = await self._story.create_pod()
        record = await self._story.attempt(1)
        self._table(("NAME", "STATUS", "NODE"), [(pod.name, (await self._story.pod()).status.phase, NONE)])
        self._say("")
        self._events()
        await asyncio.sleep(self._pause)
        self._head("Why, node by node, from the record of the decision")
        self._table(("NODE", "REFUSED BY", "REASON", "CODE"), _refusals(record))
        place = self._story.scheduler.where(pod)
        if place is not None:
            self._say(f"   The pod is {place.place}. {place.why}")

    async def _show_label(self) -> None:
        await asyncio.sleep(self._pause)
        self._head(f"{story.LABELLED} gets the label (kubectl label nodes {story.LABELLED} cpu=true)")
        labelled = self._story.clock.wall()
        await self._story.label_node()
        record = await self._story.attempt(2)
        waited = (record.started - labelled) * 1000
        self._say(
            f"   Event {record.woken_by}: the hint of plugin {record.woken_hint} says that it may help."
        )
        self._say(f"   The pod is tried again {waited:.1f} ms after the label; no timer was involved,")
        self._say("   the five-minute retry of parked pods is switched off here.")
        found = f"evaluatedNodes={record.evaluated_nodes} feasibleNodes={record.feasible_nodes}"
        self._say(f"   Successfully bound to {record.node}: {found}", "green")

    async def _show_events(self) -> None:
        await asyncio.sleep(self._pause)
        self._head("The whole story, as `kubectl describe pod` tells it")
        pod = await self._story.pod()
        self._say(f"   Name:    {pod.name}\n   Node:    {pod.spec.node_name}\n   Events:")
        self._events()

    def _events(self) -> None:
        now = datetime.now(UTC)
        rows = [_event_row(event, now) for event in self._story.events()]
        self._table(("TYPE", "REASON", "TIME (UTC)", "AGE", "FROM", "MESSAGE"), rows)

    def _head(self, text: str) -> None:
        self._step += 1
        self._say(f"\n{self._step}. {text}\n", "bold cyan")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style or None, soft_wrap=True)

    def _block(self, text: str) -> None:
        self._say("".join(f"      {line}".rstrip() + "\n" for line in text.splitlines()))

    def _table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as kubectl sets them; the last one may be as long as it likes."""
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self._say(f"   {'  '.join(cells).rstrip()}")


def _status(node: Node) -> str:
    ready = any(entry.type == "Ready" and entry.status == "True" for entry in node.status.conditions)
    return ("Ready" if ready else "NotReady") + (",SchedulingDisabled" if node.unschedulable else "")


def _taints(node: Node) -> str:
    return ",".join(f"{taint.key}:{taint.effect}" for taint in node.taints) or NONE


def _labels(node: Node) -> str:
    return ",".join(f"{key}={value}" for key, value in node.labels.items()) or NONE


def _refusals(record: DecisionRecord) -> list[tuple[str, str, str, str]]:
    names = [name for name in record.epoch.names if name] if record.epoch is not None else []
    found = [(name, record.refusal_of(name)) for name in names]
    return [
        (name, refusal.plugin, ", ".join(refusal.reasons), refusal.code)
        for name, refusal in found
        if refusal is not None
    ]


def _event_row(event: Event, now: datetime) -> tuple[str, ...]:
    time = datetime.fromisoformat(event.event_time or "")
    age = f"{max(0, int((now - time).total_seconds()))}s"
    shown = f"{time:%H:%M:%S}.{time.microsecond // 1000:03d}"
    return (event.type, event.reason, shown, age, event.reporting_controller, event.note)
