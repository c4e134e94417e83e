"""What all pages share: links lead somewhere, configurations load, examples print what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import perf
from moorage.app.configuration import configure
from moorage.bench.workloads import WORKLOADS
from moorage.snapshots.files import KEYS
from tests.docs.snippets import ROOT, snippets

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")]
EXAMPLES = sorted(ROOT.glob("examples/*/"))
SAMPLE = ROOT / "examples" / "01-sample-plugin"
_LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings, and the names that a heading had before."""
    text = page.read_text()
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    former = re.findall(r'^<a id="([\w-]+)"></a>$', text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads} | {*former}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in _LINK.findall(page.read_text()):
        if not target.startswith("http"):
            linked = page.parent / target if target else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), anchor


def test_the_contents_have_every_page():
    contents = ROOT / "docs" / "README.md"
    linked = {(contents.parent / target).resolve() for target, _ in _LINK.findall(contents.read_text())}
    assert set(ROOT.glob("docs/**/*.md")) - {contents} - linked == set()


@pytest.mark.parametrize(
    "snippet",
    [s for page in ("configuration.md", "extenders.md") for s in snippets(ROOT / "docs" / page, "yaml")],
    ids=lambda snippet: snippet.section,
)
def test_configurations_on_the_page_load(snippet, monkeypatch):
    monkeypatch.syspath_prepend(str(SAMPLE))
    assert configure(snippet.text, discover=False).profiles


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_examples_print_what_their_readme_says(folder):
    command = [sys.executable, "run.py"]
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    said = [snippet.text for snippet in snippets(folder / "README.md", "")]
    assert result.stdout.strip() in said


def test_the_example_is_the_plugin_of_the_demo():
    demo = (ROOT / "src" / "moorage" / "cli" / "story.py").read_text()
    example = (SAMPLE / "sample.py").read_text()
    method = example.partition("    def filter")[2].partition("    def ")[0]
    assert method in demo


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_hold_for_every_machine(page):
    assert re.findall(r"/(?:work|home|root|Users|tmp)/", page.read_text()) == []


def test_the_benchmarks_page_has_every_workload():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    table = page.partition("## Workloads")[2].partition("##")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert re.findall(r"`([a-z0-9-]+)`", "".join(rows)) == [workload.name for workload in (*WORKLOADS, *perf.WORKLOADS)]


def test_the_evaluate_page_names_every_input():
    page = (ROOT / "docs" / "evaluate.md").read_text().partition("## A case")[2].partition("## An answer")[0]
    assert set(KEYS) - set(re.findall(r"[a-zA-Z]+", page)) == set()
