"""The page on faults: every case has a row, and every test it names exists."""

import ast
import re
from functools import cache

import pytest

from tests.docs.snippets import ROOT

LAST = {"A": 33, "B": 25, "C": 17, "F": 15}
CASES = [f"{group}{i}" for group, last in LAST.items() for i in range(1, last + 1)]
_ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROWS = {case: cell for case, _, cell in _ROW.findall((ROOT / "docs" / "faults.md").read_text())}


@cache
def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_case_has_a_row():
    assert list(ROWS) == CASES


@pytest.mark.parametrize("case", CASES)
def test_a_case_names_tests_that_exist_or_says_why_it_has_none(case):
    named = _TEST.findall(ROWS[case])
    assert named or ROWS[case].startswith("left out: ")
    for path, name in named:
        assert name in names_in(path), f"{case}: {path} has no {name}"
