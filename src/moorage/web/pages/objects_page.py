"""Objects: the objects of an embedded cluster, by kind, with search; export, import and reset."""

from __future__ import annotations

from nicegui import ui

from moorage.web.pages import shell, transfer_view
from moorage.web.pages.text import address, object_url
from moorage.web.source import Json, ObjectsSource

REFRESH_SECONDS = 2.0


class ObjectsPage:
    def __init__(self, source: ObjectsSource, kind: str, search: str) -> None:
        self._source = source
        self._kind, self._search = kind, search
        self._shown: Json = {}

    async def show(self) -> None:
        with shell.frame(self._source, "Objects", "Objects") as content:
            shell.headline("Objects")
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        kinds = await self._source.kinds()
        answer = await self._source.objects(self._kind, self._search)
        name = next(each["kind"] for each in kinds if each["id"] == self._kind)
        transfer_view.show(self._source)
        with ui.element("div").classes("m-columns"):
            with ui.element("nav").classes("m-card m-kinds").props('aria-label="Kinds"'):
                shell.section("Kinds")
                for each in kinds:
                    self._show_kind(each)
            with shell.card():
                with ui.element("div").classes("m-row"):
                    self._input = (
                        ui.input("Search namespace/name", value=self._search, on_change=self._search_for)
                        .props('type=search dense outlined clearable debounce=300 aria-label="Search objects"')
                        .classes("m-search")
                    )
                    if not self._source.read_only:
                        ui.link(f"New {name}", address("/new", {"kind": self._kind})).classes("m-action")
                columns = [(f"c{number}", label) for number, label in enumerate(answer["columns"])]
                self._table = shell.table([*columns[:1], ("namespace", "Namespace"), *columns[1:]], [], "key")
                self._rest = ui.element("div")
        shell.Refresher(self._source, self._ask, REFRESH_SECONDS)
        self._render(answer)

    def _show_kind(self, kind: Json) -> None:
        chosen = kind["id"] == self._kind
        link = ui.link(target=address("/objects", {"kind": kind["id"]})).classes("m-group")
        link.classes("m-chosen" if chosen else "").props('aria-current="page"' if chosen else "")
        with link:
            shell.text(kind["kind"])

    async def _search_for(self) -> None:
        self._search = self._input.value or ""
        ui.navigate.history.replace(address("/objects", {"kind": self._kind, "search": self._search}))
        await self._ask()

    async def _ask(self) -> None:
        search = self._search
        answer = await self._source.objects(self._kind, search)
        gone = self._table.is_deleted or search != self._search  # the user may have typed more meanwhile
        if answer != self._shown and not gone:
            self._render(answer)

    def _render(self, answer: Json) -> None:
        self._shown = answer
        self._table.rows = [self._row(row) for row in answer["rows"]]
        self._table.set_visibility(bool(answer["rows"]))
        shell.refill(self._rest, lambda: self._show_rest(answer))

    def _show_rest(self, answer: Json) -> None:
        if answer["more"]:
            ui.label(f"Only the first {len(answer['rows'])} are shown; search for others.").classes("m-soft")
        elif not answer["rows"] and self._search:
            shell.empty("No objects match.", "Clear the search.")
        elif not answer["rows"]:
            shell.empty(
                "There are no objects of this kind.", "" if self._source.read_only else "Press New to create one."
            )

    def _row(self, row: Json) -> Json:
        meta = row["metadata"]
        namespace = meta.get("namespace", "")
        cells = {f"c{number}": _cell(cell) for number, cell in enumerate(row["cells"])}
        url = object_url(self._kind, namespace, meta["name"])
        return {"key": meta["uid"], "namespace": namespace, **cells, "c0_url": url}


def _cell(value: object) -> str:
    return "" if value is None else str(value)
