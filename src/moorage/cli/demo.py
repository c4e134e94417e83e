"""`moorage demo`: a plugin keeps a pod pending until a node gets a label, on an embedded cluster."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from moorage.api.core import Event
from moorage.api.errors import MoorageError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cli import printing, story
from moorage.cli.story import Story, StoryError
from moorage.runtime.record import DecisionRecord

PAUSE = 0.6
"""Seconds between two steps at speed 1."""
NONE = "<none>"


def demo(
    speed: Annotated[
        float, typer.Option(min=0, help="Speed of the demo: 2 is twice as fast, 0 makes no pauses.")
    ] = 1.0,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print plain text.")] = False,
) -> None:
    """Show a plugin at work: a pod stays pending, and is scheduled when a node gets the right label.

    Starts an embedded cluster with four nodes and its own API server, and stops it at the end.
    """
    teller = _Teller(printing.console(no_color=no_color), PAUSE / speed if speed else 0.0)
    try:
        asyncio.run(teller.tell())
    except (StoryError, MoorageError) as error:
        printing.fail(str(error))


class _Teller:
    """Runs the story and prints what happens."""

    def __init__(self, console: Console, pause: float) -> None:
        self._console = console
        self._pause = pause
        self._step = 0
        self._story = Story()

    async def tell(self) -> None:
        self._say("Moorage demo: your own plugin decides where a pod may run.", "bold")
        async with self._story:
            await self._show_nodes()
            await self._show_plugin()
            pod = await self._show_pending()
            await self._show_label(pod)
            await self._show_events()
        self._say("\nNext: `moorage up` starts such a cluster for kubectl, and `moorage new my-plugin`", "bold")
        self._say("creates a package with a plugin like this one and a test.", "bold")

    async def _show_nodes(self) -> None:
        self._head(f"An embedded cluster at {self._story.server}: four nodes, two of which accept no pods")
        rows = [(node.name, _status(node), _taints(node), _labels(node)) for node in await self._story.nodes()]
        self._table(("NAME", "STATUS", "TAINTS", "LABELS"), rows)

    async def _show_plugin(self) -> None:
        await asyncio.sleep(self._pause)
        self._head("A plugin, and the KubeSchedulerConfiguration that enables it")
        self._block(inspect.getsource(story.SamplePlugin))
        self._block(story.CONFIG)

    async def _show_pending(self) -> Pod:
        await asyncio.sleep(self._pause)
        self._head("A Deployment with `schedulerName: sample-scheduler` arrives; its pod stays pending")
        pod = await self._story.create_deployment()
        record = await self._story.attempt(pod, 1)
        self._table(("NAME", "STATUS", "NODE"), [(pod.name, (await self._story.pod()).status.phase, NONE)])
        self._say("")
        await self._events(pod)
        await asyncio.sleep(self._pause)
        self._head("Why, node by node, from the decision record")
        self._table(("NODE", "REJECTED BY", "REASON", "CODE"), _refusals(record))
        place = self._story.scheduler.where(pod)
        if place is not None:
            self._say(f"   The pod is {place.place}. {place.why}")
        return pod

    async def _show_label(self, pod: Pod) -> None:
        await asyncio.sleep(self._pause)
        self._head(f"{story.LABELLED} gets the label (kubectl label nodes {story.LABELLED} cpu=true)")
        labelled = self._story.clock.wall()
        await self._story.label_node()
        record = await self._story.attempt(pod, 2)
        waited = (record.started - labelled) * 1000
        self._say(f"   Event {record.woken_by}: the queueing hint of plugin {record.woken_hint} returns Queue.")
        self._say(f"   The pod is tried again {waited:.1f} ms after the label was sent. No timer is involved:")
        self._say("   the five-minute flush of unschedulable pods is disabled here.")
        found = f"evaluatedNodes={record.evaluated_nodes} feasibleNodes={record.feasible_nodes}"
        self._say(f"   Successfully bound to {record.node}: {found}", "green")

    async def _show_events(self) -> None:
        await asyncio.sleep(self._pause)
        self._head("The whole story, as `kubectl describe pod` shows it")
        pod = await self._story.running_pod()
        self._say(f"   Name:    {pod.name}\n   Node:    {pod.spec.node_name}\n   Status:  {pod.status.phase}")
        self._say("   Events:")
        await self._events(pod)

    async def _events(self, pod: Pod) -> None:
        now = datetime.now(UTC)
        rows = [_event_row(event, now) for event in await self._story.events(pod)]
        self._table(("TYPE", "REASON", "TIME (UTC)", "AGE", "FROM", "MESSAGE"), rows)

    def _head(self, text: str) -> None:
        self._step += 1
        self._say(f"\n{self._step}. {text}\n", "bold cyan")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style or None, soft_wrap=True)

    def _block(self, text: str) -> None:
        self._say("".join(f"      {line}".rstrip() + "\n" for line in text.splitlines()))

    def _table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table as kubectl does. The last column is not limited."""
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
    names = [name for name in record.node_names if name]
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
