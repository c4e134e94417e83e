"""No test uses private names of another package, so that a package can change inside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "moorage"
FOLDERS = sorted(path.name for path in TESTS.iterdir() if (path / "__init__.py").exists())
PUBLIC_BY_CONVENTION = {"_asdict", "_fields", "_make", "_replace"}
"""The methods of named tuples."""
STANDARD_LIBRARY = {"_create_unverified_context", "_getframe"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC_BY_CONVENTION


def defined(folder: Path) -> set[str]:
    """Return the private names that the files below a folder define."""
    names: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return {name for name in names if is_private(name)}


def used(file: Path) -> Iterator[tuple[int, str]]:
    """Return the private names that a test takes from something other than itself, with their lines."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("moorage"):
            yield from ((node.lineno, each.name) for each in node.names if is_private(each.name))


@pytest.mark.parametrize("folder", FOLDERS)
def test_tests_use_private_names_of_their_own_package_only(folder):
    own = defined(TESTS / folder) | STANDARD_LIBRARY
    if (SOURCE / folder).exists():
        own |= defined(SOURCE / folder)
    foreign = [
        f"{file.relative_to(TESTS)}:{line}: {name}"
        for file in sorted((TESTS / folder).rglob("*.py"))
        for line, name in used(file)
        if name not in own
    ]
    assert foreign == []
