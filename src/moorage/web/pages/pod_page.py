"""Pod: why it is pending or on its node, what would help, and the verdict of every plugin on every node."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from moorage.endpoints.answers import AttemptDetails, PendingPod
from moorage.web.pages import attempts_view, difference_view, grid, shell
from moorage.web.pages import explanation_view as view
from moorage.web.pages.queue_page import PLACES
from moorage.web.pages.text import address, node_url, pod_url
from moorage.web.source import ClusterSource, ExplainingSource, Json, PodContent, RecordingSource


class PodPage:
    def __init__(self, source: ClusterSource, key: str, attempt: int = 0, compare: int = 0) -> None:
        self._source = source
        self._key = key
        self._chosen = attempt
        """The sequence of the attempt to show; 0 for the newest."""
        self._compared = compare
        """The sequence of the attempt to compare it with; 0 for none."""
        self._shown: PodContent | None = None
        self._records: Sequence[AttemptDetails] = ()
        self._drawn: AttemptDetails | None = None

    async def show(self) -> None:
        with shell.frame(self._source, self._key) as content:
            shell.headline(self._key)
        await shell.load(content, self._fill)

    async def _fill(self) -> None:
        answer = await self._source.pod(self._key)
        if answer.explanation is not None:
            self._show_explanation(answer.explanation)
        if isinstance(self._source, RecordingSource):
            self._waiting = ui.element("div")
            with ui.element("div").classes("m-columns"):
                with shell.card():
                    shell.section("Attempts")
                    self._list = ui.element("div")
                self._attempt = ui.element("div").classes("m-answer")
            await self._show_records(answer)
        shell.Refresher(self._source, self._ask)

    async def _ask(self) -> None:
        await self._show_records(await self._source.pod(self._key))

    async def _show_records(self, answer: PodContent) -> None:
        """Update what has changed, and keep the scroll position and the chosen attempt."""
        if answer == self._shown:
            return
        self._shown = answer
        shell.refill(self._waiting, lambda: _show_waiting(answer.waiting, answer.records))
        if answer.records != self._records or not self._records:
            self._records = answer.records
            await self._choose(self._chosen)

    async def _choose(self, sequence: int) -> None:
        if sequence != self._chosen:
            self._chosen, self._compared = sequence, 0
        query = {"attempt": str(sequence or ""), "compare": str(self._compared or "")}
        ui.navigate.history.replace(address(pod_url(self._key), query))
        known = {record.sequence: record for record in self._records}
        shown = known.get(sequence) or self._records[-1] if self._records else None
        shell.refill(self._list, lambda: self._show_list(shown))
        if shown is not None and shown != self._drawn:  # otherwise its table would lose its position
            await self._draw(shown.sequence)
            self._drawn = shown

    async def _draw(self, sequence: int) -> None:
        assert isinstance(self._source, RecordingSource)
        compared = self._compared
        shown = await self._source.attempt(self._key, sequence)
        before = await self._source.attempt(self._key, compared) if compared else None
        self._attempt.clear()
        with self._attempt:
            if before is not None:
                difference_view.show_difference(before, shown)
            attempts_view.show_attempt(shown)

    def _show_list(self, shown: AttemptDetails | None) -> None:
        if shown is None:
            shell.empty("No attempts are on record.", "Only the replica that leads has records.")
        else:
            attempts_view.show_timeline(self._records, shown, self._choose)

    def _show_explanation(self, found: Json) -> None:
        _show_state(found)
        with ui.element("div").classes("m-halves"):
            with shell.card():
                shell.section("What would help")
                if found["remedies"]:
                    view.show_remedies(found["remedies"])
                    ui.label("Each was tested on a copy of the cluster.").classes("m-soft")
                else:
                    shell.empty(_no_remedy(found))
            with shell.card():
                self._show_placement(found)
        if found["refusals"]:
            with shell.card():
                shell.section("Rejections by plugin")
                view.show_refusals(found["refusals"], found["nodes"]["total"])
        if found["nodes"]["total"]:
            with shell.card():
                shell.section("All nodes")
                self._details = ui.element("div")
                grid.show_nodes(found["table"], self._show_node)

    def _show_placement(self, found: Json) -> None:
        placement, preemption = found["placement"], found["preemption"]
        if placement is not None and placement["scores"]:
            shell.section("Best nodes")
            own = [] if placement["own"] is None else [placement["own"]]
            view.show_scores([*placement["scores"], *own], placement["margin"], placement["decidedBy"])
        elif preemption["nominatedNode"]:
            shell.section("Preemption")
            view.show_preemption(
                "Preemption would delete these pods on",
                preemption["nominatedNode"],
                preemption["victims"],
                preemption["candidates"],
            )
        else:
            shell.section("Best nodes")
            shell.empty("No node is feasible, and preemption would not help.")
        if placement is not None and placement["ownRefused"]:
            shell.text(f"Its node would reject it now: {'; '.join(placement['ownRefused'])}").classes("m-bad")

    async def _show_node(self, node: str) -> None:
        """Show everything that keeps the pod from one node, above the grid."""
        assert isinstance(self._source, ExplainingSource)
        found = await self._source.pod_on_node(self._key, node)
        self._details.clear()
        with self._details, shell.card():
            with ui.element("div").classes("m-row"):
                ui.link(node, node_url(node)).classes("m-text m-section")
                if not found:
                    ui.label("feasible").classes("m-good")
            for each in found:
                shell.text(f"{each['plugin']}: {'; '.join(each['reasons'])}")
                for detail in each["details"]:
                    shell.text(detail["text"]).classes("m-soft")


def _show_state(found: Json) -> None:
    total, feasible, node = found["nodes"]["total"], found["nodes"]["feasible"], found["assignedTo"]
    with shell.card():
        if node:
            with ui.element("div").classes("m-row"):
                ui.label("Scheduled on").classes("m-good")
                ui.link(node, node_url(node)).classes("m-text")
                ui.label(f"{feasible:,} of {total:,} nodes would be feasible now")
        elif feasible:
            ui.label(f"Schedulable: {feasible:,} of {total:,} nodes are feasible").classes("m-good")
        else:
            ui.label(f"Pending: 0 of {total:,} nodes are feasible").classes("m-bad")
        for reason in found["heldBack"]:
            shell.text(f"Gated: {reason}").classes("m-bad")
        if found["message"]:
            shell.text(found["message"]).classes("m-mono")
        shell.text(f"Profile: {found['profile']}").classes("m-soft")


def _show_waiting(waiting: PendingPod | None, records: Sequence[AttemptDetails]) -> None:
    with shell.card():
        if waiting is None:
            node = records[-1].node if records and records[-1].result == "scheduled" else ""
            ui.label(f"Scheduled on {node}" if node else "Not pending").classes("m-good")
            return
        with ui.element("div").classes("m-row"):
            ui.label(PLACES[waiting.place][0]).classes("m-bad" if waiting.plugins else "m-good")
            if waiting.since is not None:
                ui.label(f"since {attempts_view.clock(waiting.since)}").classes("m-soft")
        shell.text(waiting.why)
        for each in waiting.wakes:
            shell.text(f"{each.plugin} may wake it on: {', '.join(each.events)}").classes("m-soft")


def _no_remedy(found: Json) -> str:
    if found["heldBack"]:
        return "The pod is gated: it is not scheduled until the gates are removed."
    if found["nodes"]["feasible"]:
        return "Nothing: the pod can be scheduled."
    return "No small change was found that makes a node feasible."
