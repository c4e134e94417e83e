"""One object as YAML, to read, edit or delete; or a new object from a template."""

from __future__ import annotations

from nicegui import ui

from moorage.web.pages import shell
from moorage.web.pages.templates import TEMPLATES, template
from moorage.web.pages.text import address, object_url, pod_url
from moorage.web.source import ObjectsSource

READ_ONLY = "These pages are read-only."


def editor(value: str) -> ui.textarea:
    return (
        ui.textarea("YAML", value=value)
        .props('outlined input-class=m-mono rows=26 spellcheck=false aria-label="YAML"')
        .style("width: 100%")
    )


class ObjectPage:
    def __init__(self, source: ObjectsSource, kind: str, namespace: str, name: str) -> None:
        self._source = source
        self._kind, self._namespace, self._name = kind, namespace, name
        self._opened = ""

    async def show(self) -> None:
        with shell.frame(self._source, f"{self._name} · Objects", "Objects") as content:
            shell.headline(f"{self._namespace}/{self._name}" if self._namespace else self._name)
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        self._opened = await self._read()
        with ui.element("div").classes("m-row"):
            ui.link("All objects of this kind", address("/objects", {"kind": self._kind}))
            if self._kind == "pods":
                ui.link("Scheduling of this pod", pod_url(f"{self._namespace}/{self._name}"))
        with shell.card():
            if self._source.read_only:
                ui.label(READ_ONLY).classes("m-soft")
                ui.label(self._opened).classes("m-text m-mono")
                return
            self._text = editor(self._opened)
            self._answer = ui.element("div").props('role="status"')
            with ui.element("div").classes("m-row"):
                ui.button("Save", on_click=self._save).props("unelevated")
                ui.button("Reload", on_click=self._load).props("outline")
                ui.button("Delete", on_click=self._confirm).props("outline color=negative")
        with ui.dialog() as self._dialog, ui.card():
            shell.text(f"Delete {self._name}?").classes("m-section")
            ui.label("Objects that it owns are deleted too.").classes("m-soft")
            with ui.element("div").classes("m-row"):
                ui.button("Delete object", on_click=self._delete).props("unelevated color=negative")
                ui.button("Cancel", on_click=self._dialog.close).props("outline")

    async def _save(self) -> None:
        async def saved() -> str:
            await self._source.save(self._opened, self._text.value)
            return await self._read()

        if (text := await shell.answered(self._answer, saved())) is not None:
            self._opened = self._text.value = text
            with self._answer:
                ui.label("Saved.").classes("m-good")

    async def _load(self) -> None:
        if (text := await shell.answered(self._answer, self._read())) is not None:
            self._opened = self._text.value = text

    async def _read(self) -> str:
        return await self._source.object_text(self._kind, self._namespace, self._name)

    def _confirm(self) -> None:
        self._dialog.open()

    async def _delete(self) -> None:
        async def deleted() -> bool:
            await self._source.delete_object(self._opened)
            return True

        self._dialog.close()
        if await shell.answered(self._answer, deleted()):
            ui.navigate.to(address("/objects", {"kind": self._kind}))


class NewObjectPage:
    def __init__(self, source: ObjectsSource, kind: str) -> None:
        self._source = source
        self._kind = kind

    async def show(self) -> None:
        with shell.frame(self._source, "New object", "Objects") as content:
            shell.headline("New object")
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        if self._source.read_only:
            shell.empty(READ_ONLY, "Start `moorage ui` without --read-only to create objects.")
            return
        kinds = {each["id"]: each for each in await self._source.kinds()}
        kind = kinds.get(self._kind) or kinds["pods"]
        with shell.card():
            with ui.element("nav").classes("m-row").props('aria-label="Templates"'):
                for name in TEMPLATES:
                    if name in kinds:
                        ui.link(kinds[name]["kind"], address("/new", {"kind": name}))
            self._text = editor(template(kind["id"], kind["apiVersion"], kind["kind"]))
            self._answer = ui.element("div").props('role="status"')
            ui.button("Create", on_click=self._create).props("unelevated")

    async def _create(self) -> None:
        rows = await shell.answered(self._answer, self._source.create(self._text.value))
        if rows is None:
            return
        if len(rows) == 1 and not rows[0]["failed"]:
            made = rows[0]
            ui.navigate.to(object_url(made["kind"], made["namespace"], made["name"]))
            return
        with self._answer:
            for row in rows:
                shell.text(f"{row['object']}: {row['result']}").classes("m-bad" if row["failed"] else "m-good")
