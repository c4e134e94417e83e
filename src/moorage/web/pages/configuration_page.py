"""Configuration: which plugins run where, what another configuration would mean, and, where the scheduler
allows it, the way to that one and back."""

from __future__ import annotations

import difflib
import json
import time
from functools import partial

from nicegui import ui

from moorage.web.pages import shell
from moorage.web.pages.text import age
from moorage.web.source import ConfiguredSource, Json, ReconfigurableSource

ORIGINS = {"start": "at the start", "file": "from its file", "request": "sent"}
OFF = "It is checked here, and not applied: start the scheduler with --allow-configuration-changes for that."


class ConfigurationPage:
    def __init__(self, source: ConfiguredSource) -> None:
        self._source = source
        self._found: Json = {}

    async def show(self) -> None:
        with shell.frame(self._source, "Configuration", "Configuration") as content:
            shell.headline("Configuration")
            self._present = ui.element("div").classes("m-part")
            self._editor = ui.element("div").classes("m-part")
            self._answer = ui.element("div").classes("m-answer")
            self._past = ui.element("div").classes("m-part")
        await shell.load(content, self._fill)

    async def _fill(self) -> None:
        await self._read()
        with self._editor:
            self._show_editor()

    async def _read(self) -> None:
        """What is in use, and what was."""
        self._found = await self._source.configuration()
        shell.refill(self._present, self._show_present)
        shell.refill(self._past, self._show_past)

    @property
    def _changeable(self) -> ReconfigurableSource | None:
        """The source, if a configuration can be applied."""
        source = self._source
        able = isinstance(source, ReconfigurableSource) and self._found.get("writable")
        return source if able and isinstance(source, ReconfigurableSource) and not source.read_only else None

    # What is shown

    def _show_present(self) -> None:
        found = self._found
        if "generation" in found:
            ui.label(f"Generation {found['generation']}").classes("m-soft")
        for warning in found["warnings"]:
            shell.text(warning).classes("m-bad")
        show_profiles(found["profiles"])
        with shell.card(), ui.expansion("The configuration, completed").props("dense"):
            ui.label(found["text"]).classes("m-text m-mono")

    def _show_editor(self) -> None:
        with shell.card():
            shell.section("Another configuration")
            self._other = (
                ui.textarea("A KubeSchedulerConfiguration (YAML or JSON)")
                .props("outlined input-class=m-mono rows=10 spellcheck=false")
                .style("width: 100%")
            )
            with ui.element("div").classes("m-row"):
                ui.button("Check it", on_click=self._check).props("no-caps unelevated")
                ui.button("Start from the present one", on_click=self._copy).props("no-caps outline")
                if self._changeable is None:
                    asked = isinstance(self._source, ReconfigurableSource) and not self._found["writable"]
                    ui.label(OFF if asked else "It is checked here, and not applied.").classes("m-soft")

    def _show_past(self) -> None:
        if "history" not in self._found:
            return
        with shell.card():
            shell.section("History")
            now = time.time()
            for entry in self._found["history"]:
                with ui.element("div").classes("m-past").props('role="listitem"'):
                    ui.label(f"{age(now - entry['time'])} ago").classes("m-soft")
                    ui.label(ORIGINS.get(entry["origin"], entry["origin"])).classes("m-soft")
                    shell.text(outcome(entry)).classes("m-bad" if entry["error"] else "")
                    old = not entry["error"] and entry["generation"] != self._found["generation"]
                    if self._changeable is not None and old:
                        back = partial(self._roll_back, entry["number"])
                        label = f'aria-label="Roll back to generation {entry["generation"]}"'
                        ui.button("Roll back", on_click=back).props(f"no-caps outline dense {label}")

    # What the user does

    def _copy(self) -> None:
        self._other.value = self._found["text"]

    async def _check(self) -> None:
        self._answer.clear()
        await shell.load(self._answer, self._show_checked)

    async def _show_checked(self) -> None:
        text = self._other.value or ""
        found = await self._source.check(text)
        if found["problems"]:
            with shell.card():
                shell.section(f"{len(found['problems'])} wrong").classes("m-bad")
                for problem in found["problems"]:
                    shell.text(problem)
            return
        with shell.card():
            shell.section("Valid").classes("m-good")
            for warning in found["warnings"]:
                shell.text(warning).classes("m-bad")
            lines = difflib.unified_diff(
                self._found["text"].splitlines(), found["text"].splitlines(), "present", "other", lineterm=""
            )
            difference = "\n".join(lines) or "It means what the present one means."
            ui.label(difference).classes("m-text m-mono m-diff").props("tabindex=0")
            if self._changeable is not None:
                with ui.element("div").classes("m-row"):
                    ui.button("Apply it", on_click=partial(self._apply, text)).props("no-caps unelevated")
        show_profiles(found["profiles"])

    async def _roll_back(self, number: int) -> None:
        """Into the editor, checked and compared: applying is the user's next step."""

        async def fill() -> None:
            assert isinstance(self._source, ReconfigurableSource)
            self._other.value = await self._source.past_configuration(number)
            await self._show_checked()

        self._answer.clear()
        await shell.load(self._answer, fill)
        self._answer.run_method("scrollIntoView")

    async def _apply(self, text: str) -> None:
        async def fill() -> None:
            source = self._changeable
            assert source is not None  # else there is no button
            entry = await source.apply(text)
            with shell.card():
                shell.section(outcome(entry)).classes("m-bad" if entry["error"] else "m-good")
            await self._read()

        with self._editor:  # the button that was pressed goes with the answer
            self._answer.clear()
            await shell.load(self._answer, fill)


def outcome(entry: Json) -> str:
    """What became of a configuration."""
    if entry["error"]:
        return f"Refused, generation {entry['generation']} stays: {entry['error']}"
    restart = ", ".join(entry["needsRestart"])
    return f"Applied: generation {entry['generation']}" + (
        f"; these fields need a restart: {restart}" if restart else ""
    )


def show_profiles(profiles: list[Json]) -> None:
    for profile in profiles:
        with shell.card():
            shell.section(f"Profile {profile['schedulerName']}")
            rows = [
                {"point": point, "plugins": ", ".join(map(_named, plugins)) or "none"}
                for point, plugins in profile["plugins"].items()
            ]
            shell.table(
                (("point", "Extension point"), ("plugins", "Plugins, in order (weight)")), rows, "point"
            )
            with ui.expansion("Arguments").props("dense"):
                for plugin, args in profile["pluginConfig"].items():
                    shell.text(plugin).classes("m-count")
                    ui.label(json.dumps(args, indent=2, ensure_ascii=False)).classes("m-text m-mono")


def _named(plugin: Json) -> str:
    return f"{plugin['name']} ({plugin['weight']})" if plugin.get("weight") else str(plugin["name"])
