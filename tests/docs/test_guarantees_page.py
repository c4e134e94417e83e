"""The page on what users may rely on: every number has a row, and every test it names exists."""

import re

import pytest

from tests.docs.snippets import ROOT
from tests.docs.test_faults_page import names_in

_ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROWS = {int(number): cell for number, _, cell in _ROW.findall((ROOT / "docs" / "guarantees.md").read_text())}


def test_the_rows_are_numbered_without_a_gap():
    assert list(ROWS) == list(range(1, len(ROWS) + 1))


@pytest.mark.parametrize("number", ROWS)
def test_a_row_names_tests_that_exist(number):
    named = _TEST.findall(ROWS[number])
    assert named
    for path, name in named:
        assert name in names_in(path), f"{number}: {path} has no {name}"
