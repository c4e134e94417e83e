"""docs/up.md says what `moorage up` does."""

import re
from pathlib import Path

import typer.main

from moorage.cli.root import app
from moorage.embedded.kubelet import decisions
from moorage.up import pools
from tests.docs.snippets import ROOT, snippets

PAGE = ROOT / "docs" / "up.md"


def test_the_pools_on_the_page_can_be_made():
    (snippet,) = snippets(PAGE, "yaml")
    names = [node["metadata"]["name"] for node in pools.nodes(pools.parse(snippet.text))]
    assert names == ["worker-0", "worker-1", "worker-2", "gpu-0", "gpu-1"]


def test_every_option_is_on_the_page():
    command = typer.main.get_command(app).commands["up"]  # type: ignore[attr-defined]
    options = {name for option in command.params for name in option.opts + option.secondary_opts}
    named = set(re.findall(r"`(--[a-z-]+)", PAGE.read_text()))
    assert options - named == {"--scheduler", "--ui"}
    assert named <= options


def test_every_annotation_is_on_the_page():
    known = {value for value in vars(decisions).values() if isinstance(value, str) and "moorage.dev/" in value}
    known -= {decisions.PREFIX, decisions.__doc__}
    rows = re.findall(r"^\| `(moorage\.dev/[a-z-]+)`", Path(PAGE).read_text(), re.MULTILINE)
    assert set(rows) == known
