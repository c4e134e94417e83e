"""docs/ui.md: the options it names are those of the command, and the tests it names exist."""

import re

import pytest
import typer.main

from moorage.cli.root import app
from tests.docs.snippets import ROOT
from tests.docs.test_faults_page import names_in

TEXT = (ROOT / "docs" / "ui.md").read_text(encoding="utf-8")
DEFECTS = dict(re.findall(r"^\| (\d+) \| .+? \| (.+) \|$", TEXT, re.MULTILINE))


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


@pytest.mark.parametrize("number", DEFECTS)
def test_a_defect_names_tests_that_exist_or_says_why_it_cannot_occur(number):
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", DEFECTS[number])
    assert named or DEFECTS[number].startswith("cannot occur: ")
    for path, name in named:
        assert name in names_in(path), f"{number}: {path} has no {name}"


def test_defects_that_concern_a_ui_are_all_there():
    assert {"1", "2", "6", "7", "8", "10", "11", "20"} <= DEFECTS.keys()
