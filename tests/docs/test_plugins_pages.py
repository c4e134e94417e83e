"""The pages under docs/plugins: every example runs, and every extension point has one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.framework import hot, optional, points
from tests.cli.running import run_in
from tests.docs.snippets import ROOT, Snippet, by_section, snippets

PAGES = ROOT / "docs" / "plugins"
TUTORIAL = PAGES / "tutorial.md"
SECTIONS = {
    (name, section): blocks
    for name in ("extension-points", "speed", "recipes", "preemption", "complete-plugins")
    for section, blocks in by_section(PAGES / f"{name}.md").items()
}
SHARED = ("extension-points", "Before you start")
_FILE = re.compile(r"^# ([\w.]+)$", re.MULTILINE)


@pytest.mark.parametrize("section", SECTIONS, ids="/".join)
def test_the_examples_of_a_section_run(section):
    namespace: dict[str, object] = {"__name__": "docs_plugins"}
    shared = SECTIONS[SHARED] if section != SHARED else []
    for snippet in [*shared, *SECTIONS[section]]:
        snippet.run(namespace)


@pytest.mark.parametrize(
    ("module", "pages"),
    [(points, ("extension-points",)), (optional, ("speed", "recipes")), (hot, ("speed",))],
    ids=["points", "optional", "hot"],
)
def test_every_class_to_inherit_has_an_example(module, pages):
    text = "".join(snippet.text for (name, _), blocks in SECTIONS.items() if name in pages for snippet in blocks)
    classes = {name for name, cls in vars(module).items() if getattr(cls, "__module__", "") == module.__name__}
    bases = {name for name in classes if name.endswith("Plugin") and name != "Plugin"}
    assert bases
    assert {name for name in bases if not re.search(rf"\b{name}\b", text)} == set()


def test_the_page_has_a_section_for_each_extension_point_in_order():
    headings = re.findall(r"^## (.+)$", (PAGES / "extension-points.md").read_text(), re.M)
    described = [heading.split()[0] for heading in headings if heading != "Before you start"]
    assert described == [point.label for point in points.EXTENSION_POINTS]


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_examples_import_only_what_plugin_authors_use(page):
    imported = re.findall(r"^\s*(?:from|import) (moorage[\w.]*)", (PAGES / page).read_text(), re.M)
    packages = {".".join(name.split(".")[:2]) for name in imported}
    assert packages <= {"moorage.framework", "moorage.api", "moorage.testing"}


def test_the_examples_of_extension_points_are_scalar():
    text = (PAGES / "extension-points.md").read_text()
    assert re.findall(r"Vector\w+Plugin|numpy", text) == []


def tutorial_files() -> list[Snippet]:
    """The files of the tutorial in the order of the page; a later one may replace an earlier one."""
    found = [*snippets(TUTORIAL), *snippets(TUTORIAL, "yaml")]
    return sorted(found, key=lambda snippet: snippet.first_line)


def run_tests(folder: Path, test: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout


def test_the_tutorial_works_step_by_step(tmp_path):
    written: list[str] = []
    for snippet in tutorial_files():
        match = _FILE.match(snippet.text)
        assert match, f"{snippet.section}: a block of the tutorial begins with the name of its file"
        (tmp_path / match[1]).write_text(snippet.text + "\n")
        written.append(match[1])
        if match[1].startswith("test_"):
            run_tests(tmp_path, match[1])
    assert written == [
        "teams.py", "scheduler.yaml", "test_teams.py",
        "teams.py", "scheduler.yaml", "test_more.py", "pod.yaml",
    ]  # fmt: skip
    run_tests(tmp_path, "test_teams.py")
    checked = run_in(tmp_path, "check", "scheduler.yaml")
    assert checked.returncode == 0, checked.stderr
    assert "Teams" in checked.stdout
