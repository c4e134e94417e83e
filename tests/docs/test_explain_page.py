"""The page on explain and what-if: its commands run on the cluster that it shows, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.root import app
from tests.docs.snippets import ROOT, snippets

PAGE = ROOT / "docs" / "explain.md"
PROMPT = "$ "


def commands() -> list[tuple[str, str]]:
    """Commands on the page's own cluster, with what is shown below each."""
    found: list[tuple[str, str]] = []
    for block in snippets(PAGE, "console"):
        for line in block.text.splitlines():
            if line.startswith(PROMPT):
                found.append((line.removeprefix(PROMPT).partition("#")[0].strip(), ""))
            elif found:
                found[-1] = found[-1][0], f"{found[-1][1]}{line.rstrip()}\n"
    return [(command, shown) for command, shown in found if "--snapshot cluster.yaml" in command]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cluster, workload = (block.text for block in snippets(PAGE, "yaml"))
    (tmp_path / "cluster.yaml").write_text(cluster)
    (tmp_path / "app.yaml").write_text(workload)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "shown"), commands())
def test_commands_print_what_the_page_shows(folder, command, shown):
    result = CliRunner().invoke(app, command.split()[1:], env={"COLUMNS": "120"})
    printed = "".join(f"{line.rstrip()}\n" for line in result.output.strip().splitlines())
    assert printed == shown


def test_the_options_are_those_of_the_commands():
    for name in ("explain", "what-if"):
        known = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).output
        offered = set(re.findall(r"(--[a-z-]+)", known)) - {"--help"}
        assert offered - set(re.findall(r"(--[a-z-]+)", PAGE.read_text())) <= {"--filename", "--namespace", "--output"}
