"""The parts that all pages share: header, links, light and dark mode, tables, loading and errors.

Data is shown in labels, table cells and charts only, which treat it as text. Nothing from a cluster becomes
HTML, a style or a script.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nicegui import Client, ui
from nicegui.element import Element

from moorage.api.errors import MoorageError, TransportError
from moorage.telemetry import logs
from moorage.web.source import ClusterSource, ConfiguredSource, ObjectsSource, RereadSource, ResultsSource, WhatIfSource

CSS = Path(__file__).with_name("style.css")
LINKS: Mapping[str, tuple[str, type[Any]]] = {
    "Queue": ("/", ClusterSource),
    "Cluster": ("/cluster", ClusterSource),
    "What if": ("/what-if", WhatIfSource),
    "Objects": ("/objects", ObjectsSource),
    "Configuration": ("/configuration", ConfiguredSource),
    "Compare": ("/compare", ResultsSource),
}
"""Page → address, and the protocol that a source must implement for it."""
KEYS = """<script>
document.addEventListener("keydown", (event) => {
  const search = document.querySelector("input[type=search]");
  if (event.key !== "/" || !search || event.target.matches("input, textarea")) return;
  event.preventDefault();
  search.focus();
});
</script>"""
"""The key `/` moves to the search field of a page."""
PRIMARY = "#1369a6"
"""The colour of buttons."""
AGAIN_SECONDS = 2.0
"""Time after which a page that could not be shown asks again."""
ANSWER_SECONDS = 10.0
"""Time that a busy browser may take."""
_DARK = "moorage-dark"
T = TypeVar("T")

_log = logs.get(__name__)


@contextmanager
def frame(source: Any, title: str, here: str = "") -> Iterator[Element]:
    """Show the page around its content. `here` names the current link."""
    ui.page_title(f"{title} · Moorage")
    chosen = ui.context.client.request.cookies.get(_DARK)
    mode = ui.dark_mode(None if chosen is None else chosen == "1")
    ui.colors(primary=PRIMARY)
    with ui.header().classes("m-header"):
        ui.link("Moorage", "/").classes("m-brand")
        with ui.element("nav").classes("m-nav"):
            for name, (address, able) in LINKS.items():
                if isinstance(source, able):
                    ui.link(name, address).classes("m-here" if name == here else "")
        text(source.title).classes("m-source").tooltip(source.title)
        if isinstance(source, RereadSource):
            ui.button("Read again", on_click=partial(_read_again, source)).props("flat dense no-caps")
        ui.button(icon="contrast", on_click=partial(_toggle, mode)).props('flat dense round aria-label="Light or dark"')
    with ui.element("div").classes("m-page") as content:  # inside the page's <main>
        yield content


def show_missing(source: Any, path: str) -> None:
    """Show that there is no page at an address, and which pages there are."""
    with frame(source, "Page not found"):
        headline("Page not found")
        with card():
            text(f"There is no page at {path}.")
            with ui.element("div").classes("m-row"):
                for name, (address, able) in LINKS.items():
                    if isinstance(source, able):
                        ui.link(name, address)


async def _toggle(mode: ui.dark_mode) -> None:
    """Switch between light and dark, and remember it."""
    client = ui.context.client
    dark = await ui.run_javascript(
        "const dark = !document.body.classList.contains('body--dark');"
        f"document.cookie = '{_DARK}=' + (dark ? 1 : 0) + ';path=/;max-age=31536000;samesite=lax';"
        "Quasar.Dark.set(dark);"
        "return dark;",
        timeout=ANSWER_SECONDS,
    )
    mode.value = bool(dark)  # otherwise the next update of the page would switch back
    for element in list(client.elements.values()):
        if isinstance(element, ui.echart):
            element.update()  # its colours are looked up again


async def _read_again(source: RereadSource) -> None:
    await source.read_again()
    ui.navigate.reload()


def text(value: object) -> ui.label:
    """Show data as text; long texts scroll."""
    return ui.label(str(value)).classes("m-text m-long")


def section(title: str) -> ui.label:
    return ui.label(title).classes("m-section").props('role="heading" aria-level="2"')


def headline(title: str) -> ui.label:
    return text(title).classes("m-title").props('role="heading" aria-level="1"')


@contextmanager
def card() -> Iterator[Element]:
    with ui.element("section").classes("m-card") as made:
        yield made


def empty(says: str, way_out: str = "") -> None:
    with ui.element("div").classes("m-empty"):
        text(says)
        if way_out:
            text(way_out).classes("m-soft")


def table(
    columns: Sequence[tuple[str, str]], rows: list[dict[str, Any]], key: str, per_page: int | None = None
) -> ui.table:
    """Show rows. Columns are field and heading; a field with a `FIELD_url` beside it is a link, and a field with
    a `FIELD_more` stands for several rows (`alike.merged`)."""
    per_page = per_page if per_page is not None and len(rows) > per_page else None
    described = [
        {"name": field, "field": field, "label": label, "align": "left", "sortable": True} for field, label in columns
    ]
    made = (
        ui.table(columns=described, rows=rows, row_key=key, pagination=per_page)
        .classes("m-table")
        .props("flat dense wrap-cells")
    )
    for field, _ in columns:
        made.add_slot(
            f"body-cell-{field}",
            f"""<q-td :props="props"><div class="m-cell">
            <a v-if="props.row.{field}_url" :href="props.row.{field}_url">{{{{ props.row.{field} }}}}</a>
            <template v-else>{{{{ props.row.{field} }}}}</template>
            <details v-if="props.row.{field}_more" class="m-more">
            <summary>and {{{{ props.row.{field}_more.length }}}} more</summary>
            <div v-for="each in props.row.{field}_more" :key="each.text">
            <a v-if="each.url" :href="each.url">{{{{ each.text }}}}</a>
            <template v-else>{{{{ each.text }}}}</template></div></details></div></q-td>""",
        )
    return made


async def load(content: Element, fill: Callable[[], Awaitable[None]], again_seconds: float = 0.0) -> None:
    """Show a spinner, then what `fill` adds, or why it failed.

    `again_seconds` is for what may be repeated: while the server cannot be reached, try again after this time."""
    client = ui.context.client
    with content:
        waiting: Element = ui.spinner(size="lg").props('role="status" aria-label="Loading"')
    await client.connected()
    while not _is_gone(client):
        error = await _filled(content, fill)
        if _is_gone(client):
            return
        waiting.delete()
        if error is None:
            return
        lost = again_seconds > 0 and isinstance(error, TransportError)
        with content:
            waiting = problem(error, partial(load, content, fill, again_seconds), lost)
        if not lost:
            return
        await asyncio.sleep(again_seconds)
        if waiting.is_deleted:
            return  # the user has pressed the button


async def _filled(content: Element, fill: Callable[[], Awaitable[None]]) -> Exception | None:
    """Add what `fill` adds. Returns why it failed; None if it did not, or if the user has left the page."""
    client = content.client

    async def filled() -> None:
        with content:
            await fill()

    filling = asyncio.ensure_future(filled())
    client.on_delete(lambda: filling.cancel())  # a deleted page must not get new elements
    try:
        await filling
    except asyncio.CancelledError:
        if not _is_gone(client):
            raise
    except Exception as error:
        return error
    return None


def _is_gone(client: Client) -> bool:
    """Return whether the user has left the page."""
    return client.is_deleted


async def answered(place: Element, work: Awaitable[T]) -> T | None:
    """Return the result of an action. Returns None if it was refused, and shows why in `place`; or if the
    user has left the page meanwhile."""
    client = ui.context.client
    place.clear()
    try:
        found = await work
    except MoorageError as error:
        if not _is_gone(client):
            with place, ui.element("div").classes("m-bad").props('role="alert"'):
                text(error)
        return None
    return None if _is_gone(client) else found


def problem(error: Exception, again: Callable[[], Awaitable[None]], lost: bool = False) -> Element:
    """Show why there is no answer, and a button to try again. `lost` says that this also happens by itself."""
    if not isinstance(error, MoorageError):
        _log.error("A page failed", error=error, stack=True)
    reason = str(error) if isinstance(error, MoorageError) else f"{type(error).__name__}: {error}"

    async def retry() -> None:
        made.delete()
        await again()

    with card() as made:
        title = "Connection lost; trying again" if lost else "Cannot show this page"
        text(title).classes("m-section m-bad").props('role="alert"')
        text(reason)
        ui.button("Try again", on_click=retry).props("outline no-caps").classes("m-start")
    return made


def refill(element: Element, fill: Callable[[], None]) -> None:
    element.clear()
    with element:
        fill()


class Refresher:
    """Asks a changing source again, at most twice a second and one request at a time.

    If there is no answer, or the answer is out of date, the page says so, and its content turns grey.
    """

    def __init__(
        self, source: ClusterSource | ObjectsSource, ask: Callable[[], Awaitable[str | None]], at_least: float = 0.5
    ) -> None:
        """`ask` may return why its answer is out of date."""
        self._ask = ask
        self._busy = False
        self._answered = time.time()
        self._lost: Element | None = None
        if source.refresh_seconds:
            with ui.element("div").classes("m-lost m-card").props('role="alert"') as lost:
                self._what = text("").classes("m-section")
                self._why = text("").classes("m-soft")
            lost.set_visibility(False)
            self._lost = lost
            ui.timer(max(at_least, source.refresh_seconds), self._tick, immediate=False)

    def show(self, stale: str | None) -> None:
        """Show why the content is out of date; None if it is not."""
        if self._lost is None:
            return
        if stale:
            self._what.text = "The scheduler has no connection to the API server"
            self._why.text = stale
        self._lost.set_visibility(bool(stale))

    async def _tick(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            stale = await self._ask()
        except MoorageError as error:
            seen = datetime.fromtimestamp(self._answered, UTC)
            what = "Connection lost." if isinstance(error, TransportError) else "No answer."
            self._what.text = f"{what} The page shows the state of {seen:%H:%M:%S} UTC."
            self._why.text = f"Trying again: {error}"
            if self._lost is not None:
                self._lost.set_visibility(True)
        else:
            self._answered = time.time()
            self.show(stale)
        finally:
            self._busy = False
