"""The words of docs/glossary.md: what is retired there appears nowhere, what is defined there exists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCE = ROOT / "src" / "moorage"
_ROW = re.compile(r"^\| ([a-z, ]+) \| (everywhere|identifiers) \| (.+) \|$", re.MULTILINE)
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORD = re.compile(r"[A-Za-z]+")

RETIRED = {
    word: (where, instead)
    for words, where, instead in _ROW.findall(GLOSSARY.read_text(encoding="utf-8"))
    for word in words.split(", ")
}
"""Word → where it is refused, and what the glossary has in its place."""

PACKAGES = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
TESTS = ROOT / "tests"
TEST_FOLDERS = sorted(path.name for path in TESTS.iterdir() if (path / "__init__.py").exists())
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


FOREIGN = {"bisect_left"}
"""Names that are not ours to choose."""


def complaints(text: str, refused: set[str], place: str) -> list[str]:
    """One line for each retired word of a text."""
    found = [word.lower() for word in _WORD.findall(text)]
    return [f"{place}: {word!r}, say {RETIRED[word][1]}" for word in found if word in refused]


EVERYWHERE = {word for word, (where, _) in RETIRED.items() if where == "everywhere"}


def in_python(path: Path) -> Iterator[str]:
    """Identifiers, docstrings and comments."""
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    retired = set(RETIRED) - ({"left"} if re.search(r"\bright\b", source) else set())
    yield from complaints(path.stem.replace("_", " "), retired, name)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        place = f"{name}:{token.start[0]}"
        if token.type == tokenize.NAME and token.string not in FOREIGN:
            yield from complaints(" ".join(_PART.findall(token.string)), retired, place)
        elif token.type == tokenize.COMMENT:
            yield from complaints(token.string, EVERYWHERE, place)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield from complaints(text, EVERYWHERE, f"{name}:{node.lineno}")
                if text.startswith("The same"):
                    yield f"{name}:{node.lineno}: a docstring that begins with 'The same'"
        elif isinstance(node, ast.ClassDef) and node.name == "Plan":
            yield f"{name}:{node.lineno}: a class that is called Plan"


def test_the_list_is_read():
    assert RETIRED["ground"] == ("identifiers", "baseline")
    assert len(RETIRED) > 20


@pytest.mark.parametrize("package", PACKAGES)
def test_code_has_no_retired_word(package):
    found = [line for path in sorted((SOURCE / package).rglob("*.py")) for line in in_python(path)]
    assert found == []


@pytest.mark.parametrize("folder", TEST_FOLDERS)
def test_tests_have_no_retired_word(folder):
    found = [line for path in sorted((TESTS / folder).rglob("*.py")) for line in in_python(path)]
    assert found == []


def test_files_outside_the_folders_of_tests_have_no_retired_word():
    assert [line for path in sorted(TESTS.glob("*.py")) for line in in_python(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_have_no_retired_word(page):
    text = page.read_text(encoding="utf-8")
    if page == GLOSSARY:
        text = text.partition("## Retired words")[0]
    # Code in backquotes is Python's or Kubernetes' own; what is Moorage's is held by the test above.
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    assert complaints(prose, EVERYWHERE, page.name) == []
