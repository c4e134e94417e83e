"""Export, import and reset of the objects of an embedded cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial

from nicegui import events, ui

from moorage.web.pages import shell
from moorage.web.pages.alike import merged
from moorage.web.pages.text import count
from moorage.web.source import Json, ObjectsSource

FILES = {
    "snapshot": ("Export as a snapshot", "snapshot.json"),
    "simulator": ("Export for kube-scheduler-simulator", "export.yml"),
}
"""Form → label of the button, and name of the file. The simulator reads YAML, and JSON is YAML."""
MAX_BYTES = 64 << 20
PER_PAGE = 20
MAX_NAMES = 200
"""Objects that the dialog names."""
IMPORT = (
    "A snapshot, an export of kube-scheduler-simulator, or manifests. Objects that are not in the file stay. "
    "Pods are created after namespaces, classes, volumes and nodes; pods with a node keep it."
)


def show(source: ObjectsSource) -> None:
    Transfer(source).show()


class Transfer:
    def __init__(self, source: ObjectsSource) -> None:
        self._source = source

    def show(self) -> None:
        with shell.card():
            with ui.element("div").classes("m-row"):
                for form, (label, name) in FILES.items():
                    ui.button(label, on_click=partial(self._export, form, name)).props("outline dense")
                if not self._source.read_only:
                    ui.button("Import", on_click=self._open_import).props("outline dense")
                    ui.button("Reset", on_click=self._open_reset).props("outline dense color=negative")
            self._working = ui.spinner(size="lg").props('aria-label="Working"')
            self._working.set_visibility(False)
            self._answer = ui.element("div").classes("m-answer").props('role="status"')
        if not self._source.read_only:
            self._make_import()
            self._reset = ui.dialog()

    async def _export(self, form: str, name: str) -> None:
        content = await shell.answered(self._answer, self._source.export(form))
        if content is not None:
            ui.download.content(content, name, "application/json")

    # Import

    def _make_import(self) -> None:
        with ui.dialog() as self._import, ui.card():
            shell.text("Import").classes("m-section")
            ui.label(IMPORT).classes("m-soft")
            choices = {False: "Keep existing objects", True: "Replace existing objects"}
            self._replace = ui.radio(choices, value=False)
            ui.upload(
                label="JSON or YAML file",
                auto_upload=True,
                max_files=1,
                max_file_size=MAX_BYTES,
                on_upload=self._bring_in,
                on_rejected=self._refuse_file,
            )
            ui.button("Close", on_click=self._import.close).props("outline")

    def _open_import(self) -> None:
        self._import.open()

    def _refuse_file(self) -> None:
        self._import.close()
        with self._answer:
            shell.text(f"The file is too large; the limit is {MAX_BYTES >> 20} MiB.").classes("m-bad")

    async def _bring_in(self, event: events.UploadEventArguments) -> None:
        self._import.close()
        await self._report("Import", self._source.bring_in(await event.file.read(), self._replace.value))

    # Reset

    async def _open_reset(self) -> None:
        created = await shell.answered(self._answer, self._source.created())
        if created is None:
            return
        self._reset.clear()
        with self._reset, ui.card().classes("m-dialog"):
            shell.text("Reset").classes("m-section")
            says = "Deletes the objects created since the cluster was started, and the objects that they own"
            ui.label(f"{says}: {count(len(created), 'object')}. Changes to older objects are not undone.")
            if created:
                _show_names(created[:MAX_NAMES])
            if len(created) > MAX_NAMES:
                ui.label(f"and {len(created) - MAX_NAMES:,} more").classes("m-soft")
            with ui.element("div").classes("m-row"):
                if created:
                    ui.button("Delete objects", on_click=self._do_reset).props("unelevated color=negative")
                ui.button("Close", on_click=self._reset.close).props("outline")
        self._reset.open()

    async def _do_reset(self) -> None:
        self._reset.close()
        await self._report("Reset", self._source.reset())

    # Results

    async def _report(self, what: str, work: Awaitable[list[Json]]) -> None:
        self._working.set_visibility(True)
        rows = await shell.answered(self._answer, work)
        if not self._working.is_deleted:
            self._working.set_visibility(False)
        if rows is not None:
            with self._answer:
                self._show_rows(what, rows)

    def _show_rows(self, what: str, rows: list[Json]) -> None:
        failed = [row for row in rows if row["failed"]]
        says = f"{what}: {count(len(rows), 'object')}, {len(failed)} failed"
        shell.section(says).classes("m-bad" if failed else "m-good")
        rows = sorted(rows, key=lambda row: not row["failed"])
        ordered = merged(({**row, "key": number} for number, row in enumerate(rows)), "object", ("result", "failed"))
        if ordered:
            shell.table((("object", "Object"), ("result", "Result")), ordered, "key", PER_PAGE)


def _show_names(names: Sequence[str]) -> None:
    """Show a list that scrolls, so that the buttons below it stay visible."""
    with ui.element("ul").classes("m-names").props('tabindex=0 aria-label="Objects to delete"'):
        for name in names:
            with ui.element("li"):
                ui.label(name).classes("m-text")
