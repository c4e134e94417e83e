"""Configuration: the plugins at each extension point, a check of another configuration and, if the scheduler
allows it, applying it and rolling back."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Sequence
from functools import partial

from nicegui import ui

from moorage.endpoints.answers import ConfigurationAnswer, PastConfiguration, PluginAndWeight, ProfileDescription
from moorage.web.pages import shell
from moorage.web.pages.text import age, count
from moorage.web.source import ConfiguredSource, ReconfigurableSource

ORIGINS = {"start": "at start", "file": "from the file", "request": "by request"}
CHECK_ONLY = "The configuration is checked here, but not applied."
OFF = f"{CHECK_ONLY} To apply it, start the scheduler with --allow-configuration-changes."


class ConfigurationPage:
    def __init__(self, source: ConfiguredSource) -> None:
        self._source = source
        self._found: ConfigurationAnswer

    async def show(self) -> None:
        with shell.frame(self._source, "Configuration", "Configuration") as content:
            shell.headline("Configuration")
            self._present = ui.element("div").classes("m-part")
            self._editor = ui.element("div").classes("m-part")
            self._answer = ui.element("div").classes("m-answer")
            self._past = ui.element("div").classes("m-part")
        await shell.load(content, self._fill, shell.AGAIN_SECONDS)

    async def _fill(self) -> None:
        await self._read()
        with self._editor:
            self._show_editor()

    async def _read(self) -> None:
        """Read the configuration and its history."""
        self._found = await self._source.configuration()
        shell.refill(self._present, self._show_present)
        shell.refill(self._past, self._show_past)

    @property
    def _changeable(self) -> ReconfigurableSource | None:
        """Return the source if it can apply a configuration."""
        source = self._source
        able = isinstance(source, ReconfigurableSource) and self._found.writable and not source.read_only
        return source if able and isinstance(source, ReconfigurableSource) else None

    # Content

    def _show_present(self) -> None:
        found = self._found
        if found.generation:
            ui.label(f"Generation {found.generation}").classes("m-soft")
        for warning in found.warnings:
            shell.text(warning).classes("m-bad")
        show_profiles(found.profiles)
        with shell.card(), ui.expansion("Complete configuration").props("dense"):
            ui.label(found.text).classes("m-text m-mono")

    def _show_editor(self) -> None:
        with shell.card():
            shell.section("Check another configuration")
            self._other = (
                ui.textarea("A KubeSchedulerConfiguration (YAML or JSON)")
                .props("outlined input-class=m-mono rows=10 spellcheck=false")
                .style("width: 100%")
            )
            with ui.element("div").classes("m-row"):
                ui.button("Check", on_click=self._check).props("no-caps unelevated")
                ui.button("Copy the current configuration", on_click=self._copy).props("no-caps outline")
                if self._changeable is None:
                    off = isinstance(self._source, ReconfigurableSource) and not self._found.writable
                    ui.label(OFF if off else CHECK_ONLY).classes("m-soft")

    def _show_past(self) -> None:
        if not self._found.history:
            return
        with shell.card():
            shell.section("History")
            now = time.time()
            for entry in self._found.history:
                with ui.element("div").classes("m-past").props('role="listitem"'):
                    ui.label(f"{age(now - entry.time)} ago").classes("m-soft")
                    ui.label(ORIGINS.get(entry.origin, entry.origin)).classes("m-soft")
                    shell.text(outcome(entry)).classes("m-bad" if entry.error else "")
                    old = not entry.error and entry.generation != self._found.generation
                    if self._changeable is not None and old:
                        back = partial(self._roll_back, entry.number)
                        label = f'aria-label="Roll back to generation {entry.generation}"'
                        ui.button("Roll back", on_click=back).props(f"no-caps outline dense {label}")

    # Actions

    def _copy(self) -> None:
        self._other.value = self._found.text

    async def _check(self) -> None:
        self._answer.clear()
        await shell.load(self._answer, self._show_checked)

    async def _show_checked(self) -> None:
        text = self._other.value or ""
        found = await self._source.check(text)
        if found.problems:
            with shell.card():
                shell.section(count(len(found.problems), "problem")).classes("m-bad")
                for problem in found.problems:
                    shell.text(problem)
            return
        with shell.card():
            shell.section("Valid").classes("m-good")
            for warning in found.warnings:
                shell.text(warning).classes("m-bad")
            lines = difflib.unified_diff(
                self._found.text.splitlines(), found.text.splitlines(), "current", "new", lineterm=""
            )
            difference = "\n".join(lines) or "No difference from the current configuration."
            ui.label(difference).classes("m-text m-mono m-diff").props("tabindex=0")
            if self._changeable is not None:
                with ui.element("div").classes("m-row"):
                    ui.button("Apply", on_click=partial(self._apply, text)).props("no-caps unelevated")
        show_profiles(found.profiles)

    async def _roll_back(self, number: int) -> None:
        """Put an old configuration into the editor, and check and compare it. The user applies it."""

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
            assert source is not None  # otherwise there is no button
            entry = await source.apply(text)
            with shell.card():
                shell.section(outcome(entry)).classes("m-bad" if entry.error else "m-good")
            await self._read()

        with self._editor:  # clearing the answer removes the pressed button
            self._answer.clear()
            await shell.load(self._answer, fill)


def outcome(entry: PastConfiguration) -> str:
    """Return whether a configuration was applied."""
    if entry.error:
        return f"Rejected; generation {entry.generation} stays in use: {entry.error}"
    restart = ", ".join(entry.needs_restart)
    return f"Applied: generation {entry.generation}" + (f"; these fields need a restart: {restart}" if restart else "")


def show_profiles(profiles: Sequence[ProfileDescription]) -> None:
    for profile in profiles:
        with shell.card():
            shell.section(f"Profile {profile.scheduler_name}")
            rows = [
                {"point": point, "plugins": ", ".join(map(_named, plugins)) or "none"}
                for point, plugins in profile.plugins.items()
            ]
            shell.table((("point", "Extension point"), ("plugins", "Plugins, in order (weight)")), rows, "point")
            with ui.expansion("Arguments").props("dense"):
                for plugin, args in profile.plugin_config.items():
                    shell.text(plugin).classes("m-count")
                    ui.label(json.dumps(args, indent=2, ensure_ascii=False)).classes("m-text m-mono")


def _named(plugin: PluginAndWeight) -> str:
    return f"{plugin.name} ({plugin.weight})" if plugin.weight else plugin.name
