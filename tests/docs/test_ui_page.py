"""docs/ui.md: the options it names are those of the command, and its pages exist."""

import re

import typer.main

from mooring.cli.root import app
from tests.docs.snippets import ROOT

TEXT = (ROOT / "docs" / "ui.md").read_text(encoding="utf-8")


def test_every_option_of_the_command_is_on_the_page():
    command = typer.main.get_command(app).commands["ui"]  # type: ignore[attr-defined]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    named = set(re.findall(r"--[a-z][a-z-]+", TEXT.partition("## Options")[2].partition("## Who")[0]))
    assert named <= known
    assert known - named <= {"--browser"}


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "images").glob("ui-*.png"))
    assert len(pictures) == TEXT.count("![") == 4
    assert max(picture.stat().st_size for picture in pictures) < 150_000
