"""Pod: why it is pending or on its node, what would help, and the verdict of every plugin on every node."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import background_tasks, ui

from moorage.api.errors import MoorageError
from moorage.endpoints.answers import AttemptDetails
from moorage.web.pages import attempts_view, difference_view, grid, pod_state, shell
from moorage.web.pages import explanation_view as view
from moorage.web.pages.text import address, clock, node_url, pod_url
from moorage.web.source import (
    ClusterSource,
    CopyingSource,
    Explained,
    ExplainingSource,
    Json,
    PodContent,
    RecordingSource,
)


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
        self._figures: view.Figures = {}

    async def show(self) -> None:
        with shell.frame(self._source, self._key) as content:
            shell.headline(self._key)
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        answer = await self._source.pod(self._key)
        if answer.explanation is not None:
            self._show_explanation(answer.explanation)
        if isinstance(self._source, RecordingSource):
            self._state = ui.element("div").classes("m-part")
            self._advice = ui.element("div").classes("m-answer")
            with ui.element("div").classes("m-columns") as self._history:
                with shell.card():
                    shell.section("Attempts")
                    self._list = ui.element("div")
                self._attempt = ui.element("div").classes("m-answer")
            await self._show_records(answer)
            background_tasks.create(self._explain(), name="explain a pod")
        shell.Refresher(self._source, self._ask)

    async def _ask(self) -> None:
        await self._show_records(await self._source.pod(self._key))

    async def _show_records(self, answer: PodContent) -> None:
        """Update what has changed, and keep the scroll position and the chosen attempt."""
        if answer == self._shown:
            return
        self._shown = answer
        self._history.set_visibility(answer.exists or bool(answer.records))
        shell.refill(self._state, lambda: pod_state.show_recorded(answer, self._key))
        if answer.records != self._records or not self._records:
            known, self._records = bool(self._records), answer.records
            await self._choose(self._chosen)
            if known:
                await self._explain()

    async def _explain(self) -> None:
        """Show what would help, and the figures behind the rejections, from a copy of the cluster."""
        content, source, client = self._shown, self._source, self._advice.client
        if not isinstance(source, CopyingSource) or content is None or not pod_state.needs_copy(content):
            self._advice.clear()
            return
        newest = content.records[-1].started if content.records else 0.0
        if not self._figures:
            self._advice.clear()
            with self._advice:
                ui.spinner(size="md").props('aria-label="Explaining"')
        try:
            found = await source.explained(self._key, newest)
        except MoorageError as error:
            self._advice.clear()
            with self._advice:
                shell.text(f"Remedies are not available: {error}").classes("m-soft")
            return
        if client.is_deleted:
            return
        self._figures = view.figures(found.explanation)
        shell.refill(self._advice, lambda: self._show_advice(found))
        await self._draw_again()

    def _show_advice(self, found: Explained) -> None:
        read = clock(found.read)
        if found.explanation["assignedTo"]:
            with shell.card():
                shell.section("Its node now")
                shell.text(pod_state.why_there(found.explanation) or "Its node cannot be compared with others now.")
                ui.label(f"On a copy of the cluster as of {read}.").classes("m-soft")
            return
        with ui.element("div").classes("m-halves"):
            self._show_remedies(found.explanation, f"Each was tested on a copy of the cluster as of {read}.")
            with shell.card():
                self._show_placement(found.explanation)

    async def _draw_again(self) -> None:
        """Show the newest attempt again, with figures."""
        drawn = self._drawn
        if drawn is not None and self._records and drawn.sequence == self._records[-1].sequence and drawn.refusals:
            await self._draw(drawn.sequence)

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
            newest = bool(self._records) and shown.sequence == self._records[-1].sequence
            attempts_view.show_attempt(shown, self._figures if newest else {})

    def _show_list(self, shown: AttemptDetails | None) -> None:
        if shown is None:
            shell.empty("No attempts are on record.", "Only the replica that leads has records.")
        else:
            attempts_view.show_timeline(self._records, shown, self._choose)

    def _show_explanation(self, found: Json) -> None:
        pod_state.show_explained(found)
        placed = bool(found["assignedTo"]) and not found["remedies"]
        with ui.element("div").classes("m-part" if placed else "m-halves"):
            if not placed:
                self._show_remedies(found, "Each was tested on a copy of the cluster.")
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

    def _show_remedies(self, found: Json, tested: str) -> None:
        with shell.card():
            shell.section("What would help")
            if found["remedies"]:
                view.show_remedies(found["remedies"])
                if all(remedy["node"] for remedy in found["remedies"]):
                    ui.label(tested).classes("m-soft")
            else:
                shell.empty(_no_remedy(found))

    def _show_placement(self, found: Json) -> None:
        placement, preemption = found["placement"], found["preemption"]
        if placement is not None and placement["scores"]:
            shell.section("Best nodes")
            own = [] if placement["own"] is None else [placement["own"]]
            # The state of a pod that has a node says how far that node is ahead.
            margin = None if found["assignedTo"] else placement["margin"]
            view.show_scores([*placement["scores"], *own], margin, placement["decidedBy"])
        elif preemption["nominatedNode"]:
            shell.section("Preemption")
            view.show_preemption(
                "Preemption would delete these pods on",
                preemption["nominatedNode"],
                preemption["victims"],
                preemption["candidates"],
            )
        elif found["state"] == "nominated":
            shell.section("Preemption")
            shell.empty(found["headline"])
        else:
            shell.section("Best nodes")
            shell.empty("No node is feasible, and preemption would not help.")

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


def _no_remedy(found: Json) -> str:
    if found["heldBack"]:
        return "The pod is gated: it is not scheduled until the gates are removed."
    if found["nodes"]["feasible"]:
        return "Nothing is needed: the pod can be scheduled."
    return "No small change was found that makes a node feasible."
