"""Every message that docs/troubleshooting.md quotes is one that the program writes."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.snippets import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
_QUOTED = re.compile(r"``(.+?)``|`(.+?)`")
_FIELD = re.compile(r"\{[^{}]*\}|%s")
OF_OTHERS = ("kubectl ", "connection refused")
"""What kubectl says, or what a user types."""


def message_cells() -> Iterator[str]:
    """The first cell of every row of a table."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith(("| symptom", "| message")):
            yield re.split(r" (?<!\\)\| ", line[2:])[0]


def quotes() -> list[str]:
    found = [two or one for cell in message_cells() for two, one in _QUOTED.findall(cell)]
    sentences = [text for text in found if " " in text and not text.startswith(OF_OTHERS)]
    return list(dict.fromkeys(sentences))


@cache
def literals() -> tuple[str, ...]:
    """Every text in the source, with … for what is filled in."""
    found: list[str] = []
    for path in (ROOT / "src" / "moorage").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(_FIELD.sub("…", node.value))
    return tuple(found)


def pattern(quote: str) -> re.Pattern[str]:
    """The quote, in which … stands for anything."""
    return re.compile(".*".join(re.escape(part) for part in quote.split("…")), re.DOTALL)


def test_the_page_quotes_many_messages():
    assert len(quotes()) > 40


@pytest.mark.parametrize("quote", quotes())
def test_a_quoted_message_is_in_the_source(quote):
    wanted = pattern(quote)
    assert any(wanted.search(text) for text in literals()), quote
