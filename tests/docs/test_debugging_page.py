"""docs/plugins/debugging.md: every example runs, beside a snapshot, and every option that it names exists."""

import random
import re

import pytest

from moorage import snapshots
from moorage.api.resources import NODES, PODS
from moorage.cli.root import app
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod
from tests.cli.running import runner
from tests.docs.snippets import ROOT, by_section

PAGE = ROOT / "docs" / "plugins" / "debugging.md"
SECTIONS = by_section(PAGE)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_examples_of_a_section_run(section, tmp_path, monkeypatch):
    nodes = [make_node("a"), make_node("b", labels={"team": "red"})]
    objects = ClusterObjects({NODES: nodes, PODS: [make_pod("p", labels={"team": "red"})]})
    snapshots.save(objects, tmp_path / "cluster.json.gz", taken="2026-01-01T00:00:00Z", annotations=False, salt=None)
    monkeypatch.chdir(tmp_path)
    random.seed(0)
    namespace: dict[str, object] = {"__name__": "docs_debugging"}
    for snippet in SECTIONS[section]:
        snippet.run(namespace)


def test_there_is_an_example_for_the_kit_a_snapshot_and_a_notebook():
    assert list(SECTIONS) == ["A breakpoint in a test", "A REPL on a snapshot", "A notebook"]


@pytest.mark.parametrize("command", ["up", "run", "evaluate", "explain", "check", "snapshot"])
def test_the_options_of_the_page_exist(command):
    named = re.findall(rf"moorage {command} ([^`\n#]*)", PAGE.read_text())
    options = {option for line in named for option in re.findall(r"--[a-z-]+", line)}
    shown = runner.invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert {option for option in options if option not in shown} == set()
