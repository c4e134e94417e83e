"""docs/simulate.md: its examples run, and it names every field, option and measure."""

import re

import msgspec
import pytest

from moorage import Simulation
from moorage.cli.root import app
from moorage.sim import scenario, traces
from tests.cli.running import runner
from tests.docs.snippets import ROOT, by_section, snippets

PAGE = ROOT / "docs" / "simulate.md"
TEXT = PAGE.read_text()
PYTHON = by_section(PAGE)
YAML = {snippet.section: snippet.text for snippet in snippets(PAGE, "yaml")}


@pytest.mark.parametrize("section", PYTHON)
def test_the_examples_of_a_section_run(section):
    namespace: dict[str, object] = {"__name__": "docs_simulate"}
    for snippet in PYTHON[section]:
        snippet.run(namespace)


def test_the_scenario_runs_and_its_assertions_hold():
    result = Simulation(YAML["Scenarios"]).run()
    assert (result.failed, result.problems) == ([], [])
    assert result["lost"] > 0
    named = set(re.findall(r"`([\w.]+)`", TEXT))
    shown = {name.partition(".")[0] for name in result.measures}
    assert shown - {name.partition(".")[0] for name in named} == set()


def test_the_mapping_is_read(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,cpu_milli,memory_mib\nn,4000,8192\n")
    path = tmp_path / "pods.csv"
    path.write_text("job,cpu_milli,memory_mib,submitted,seconds\na,100,100,0,60\nb,100,100,5,60\n")
    trace = traces.Trace(path, traces.read_mapping(YAML["Traces"], "page"))
    result = Simulation(trace).run()
    assert (result["ended"], result["nodes"], sorted(result.nodes())) == (2, 1, ["default/a-0", "default/b-1"])


KINDS = (
    scenario.Scenario, scenario.NodeShape, scenario.PodWorkload, scenario.ScenarioEvent,
    scenario.AssertionFields, scenario.LabelNodes, scenario.TaintNodes, scenario.ScaleWorkload,
    scenario.ObjectName, scenario.Selected, traces.TraceMapping, traces.NodeColumns, traces.PodColumns,
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_is_on_the_page(kind):
    words = set(re.findall(r"[a-zA-Z]+", " ".join(re.findall(r"`[^`\n]+`|\{[^\n]*", TEXT))))
    assert {field.encode_name for field in msgspec.structs.fields(kind)} - words == set()


def test_every_option_is_on_the_page():
    described = runner.invoke(app, ["simulate", "--help"], env={"COLUMNS": "200"}).stdout
    options = set(re.findall(r"(--[a-z][a-z-]+)", described)) - {"--help", "--output-dir"}
    assert {option for option in options if option not in TEXT} == set()
