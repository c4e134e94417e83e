"""Configuration: which plugins run where, and what another configuration would mean."""

from __future__ import annotations

import difflib
import json

from nicegui import ui

from mooring.web import shell
from mooring.web.source import ConfiguredSource, Json


class ConfigurationPage:
    def __init__(self, source: ConfiguredSource) -> None:
        self._source = source
        self._text = ""

    async def show(self) -> None:
        with shell.frame(self._source, "Configuration", "Configuration") as content:
            shell.headline("Configuration")
        await shell.load(content, self._fill)

    async def _fill(self) -> None:
        found = await self._source.configuration()
        self._text = found["text"]
        for warning in found["warnings"]:
            shell.text(warning).classes("m-bad")
        for problem in found["problems"]:
            shell.text(f"Not resolved here: {problem}").classes("m-soft")
        _show_profiles(found["profiles"])
        with shell.card(), ui.expansion("The configuration, completed").props("dense"):
            ui.label(self._text).classes("m-text m-mono")
        with shell.card():
            shell.section("Another configuration")
            self._other = (
                ui.textarea("A KubeSchedulerConfiguration (YAML or JSON)")
                .props("outlined input-class=m-mono rows=10")
                .style("width: 100%")
            )
            with ui.element("div").classes("m-row"):
                ui.button("Check it", on_click=self._check).props("no-caps unelevated")
                ui.label("It is checked here, and not applied.").classes("m-soft")
        self._answer = ui.element("div").classes("m-answer")

    async def _check(self) -> None:
        self._answer.clear()
        await shell.load(self._answer, self._show_checked)

    async def _show_checked(self) -> None:
        found = await self._source.check(self._other.value or "")
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
                self._text.splitlines(), found["text"].splitlines(), "present", "pasted", lineterm=""
            )
            ui.label("\n".join(lines) or "It means what the present one means.").classes("m-text m-mono")
        _show_profiles(found["profiles"])


def _show_profiles(profiles: list[Json]) -> None:
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
