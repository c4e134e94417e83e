"""The size and the names of the source: limits that keep every package readable. A limit may be raised with a
reason in docs/architecture.md."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).resolve().parent.parent / "src" / "moorage"
MODULES = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
LINES = {path: text.count("\n") for path, text in MODULES.items()}
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
LARGE_PACKAGES = {"embedded", "contrib", "plugins"}
SAME_NAMES = {
    "Extender": "the configuration's entry, as v1.Extender, and the port of the framework",
    "NodeAffinity": "the API type and the plugin, both named by Kubernetes",
    "Plugin": "the configuration's entry, as v1.Plugin, and the base class of all plugins",
    "Profile": "the configuration's entry and the plugins built from it",
}
"""Public class names that exist twice, with the reason."""


def size_of(package: str) -> tuple[int, int]:
    """Return the number of files and lines of a package."""
    inside = [lines for path, lines in LINES.items() if SOURCE / package in path.parents]
    return len(inside), sum(inside)


def test_public_class_names_are_unique():
    names = Counter(
        node.name
        for text in MODULES.values()
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert sorted(name for name, count in names.items() if count > 1) == sorted(SAME_NAMES)


def test_files_are_small():
    assert {path.name: lines for path, lines in LINES.items() if lines > 500} == {}
    assert 100 <= median(LINES.values()) <= 180


def test_the_source_is_small():
    assert len(LINES) <= 650
    assert sum(LINES.values()) <= 103_000


def test_packages_are_small():
    files = {package: size_of(package)[0] for package in PACKAGES}
    assert {name: count for name, count in files.items() if count > 40 and name not in LARGE_PACKAGES} == {}
    assert size_of("app")[0] <= 12
    assert size_of("app")[1] <= 1450
    assert size_of("framework")[0] <= 16
    assert size_of("framework")[1] <= 3400
