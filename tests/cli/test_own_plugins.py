"""Profiles of a configuration, own plugins included, in `moorage evaluate` and `moorage bench engine`."""

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.api import decoding
from moorage.cli.root import app
from moorage.testing import make_node, make_pod
from tests.cli.running import runner

PLUGIN = """
from moorage.framework import FilterPlugin, Plugin, ScorePlugin, Status
from moorage.framework.args import PluginArgs

class EvenArgs(PluginArgs):
    bonus: int = 7

class Even(FilterPlugin, ScorePlugin):
    name = "Even"
    Args = EvenArgs

    def __init__(self, args, handle):
        self.bonus = args.bonus

    def filter(self, state, pod, node):
        return Status.unschedulable("node is odd") if int(node.name[-1]) % 2 else None

    def score(self, state, pod, node):
        return self.bonus
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: plain
  - schedulerName: even
    percentageOfNodesToScore: 1
    plugins: {multiPoint: {enabled: [{name: "own_even:Even", weight: 3}]}}
"""
BENCH = ("bench", "engine", "plain", "--nodes", "20", "--pods", "20", "--measure", "20", "-o", "json")


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "own_even.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return "--config", str(tmp_path / "config.yaml"), "--plugin-path", str(tmp_path)


def case(**args: Any) -> str:
    nodes = [decoding.to_builtins(make_node(f"n{number}")) for number in range(4)]
    pod = decoding.to_builtins(make_pod("p", cpu="1"))
    return json.dumps({"id": 1, "input": {"pod": pod, "nodes": nodes, "args": args}})


def answer(text: str, *args: str) -> dict[str, Any]:
    result = runner.invoke(app, ["evaluate", *args], input=text)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_evaluate_asks_the_named_profile_and_each_of_its_plugins_alone(options):
    found = answer(case(), *options, "--profile", "even")
    assert found["feasible"] == ["n0", "n2"]
    assert found["plugins"]["Even"] == {
        "filter": {name: {"code": "Unschedulable", "reasons": ["node is odd"]} for name in ("n1", "n3")},
        "score": dict.fromkeys(("n0", "n1", "n2", "n3"), 21),
    }
    assert "filter" not in found["plugins"]["NodeResourcesFit"]


def test_evaluate_asks_the_first_profile_when_none_is_named(options):
    found = answer(case(), *options)
    assert found["feasible"] == ["n0", "n1", "n2", "n3"]
    assert "Even" not in found["plugins"]


def test_a_case_may_bring_arguments_of_an_own_plugin(options):
    found = answer(case(Even={"bonus": 2}), *options, "--profile", "even")
    assert found["plugins"]["Even"]["score"]["n0"] == 6


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"Odd": {}}, "input.args.Odd: profile 'even' has no plugin of this name; it has DefaultBinder, "),
        ({"Odd": {}}, ", Even, "),
        ({"Even": {"bonus": "x"}}, "input.args.Even.bonus: expected an integer, got a string"),
        ({"Even": {"bonsu": 1}}, 'input.args.Even.bonsu: unknown field "bonsu" (did you mean "bonus"?)'),
    ],
)
def test_arguments_that_no_plugin_takes_are_refused(args, error, options):
    found = answer(case(**args), *options, "--profile", "even")
    assert set(found) - {"plugins"} == {"id", "error"}
    assert error in found["error"]


def test_evaluate_refuses_arguments_of_plugins_that_the_default_profile_does_not_have():
    found = answer(case(NodeResourceFit={}))
    assert found["error"].startswith(
        "input.args.NodeResourceFit: profile 'default-scheduler' has no plugin of this name; it has "
    )
    assert ", NodeResourcesFit, " in found["error"]


def test_bench_measures_the_named_profile(options):
    result = runner.invoke(app, [*BENCH, *options, "--profile", "even"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["measured"] == 20


def test_bench_says_which_pod_a_profile_did_not_place(options, tmp_path):
    (tmp_path / "own_even.py").write_text(PLUGIN.replace("% 2", ">= 0"))
    (tmp_path / "own_odd.py").write_text(PLUGIN.replace("int(node.name[-1]) % 2", "True"))
    (tmp_path / "config.yaml").write_text(CONFIG.replace("own_even", "own_odd"))
    result = runner.invoke(app, [*BENCH, *options, "--profile", "even"])
    assert result.exit_code == 1
    assert "Workload plain: default/plain-0 was not scheduled: 0/20 nodes are available" in result.stderr


@pytest.mark.parametrize("command", [("evaluate",), BENCH])
@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--profile", "odd"), "the configuration has no profile 'odd'; it has plain, even"),
        (("--plugin-path", "no-such-folder"), "--plugin-path: no-such-folder is not a folder"),
        (("--plugin", "nowhere:Plugin"), "nowhere"),
    ],
)
def test_what_is_wrong_with_the_options_is_one_sentence(command, args, error, options):
    result = runner.invoke(app, [*command, *options, *args], input="")
    assert result.exit_code == 1
    assert error in result.stderr


def test_a_profile_without_a_configuration_is_refused():
    result = runner.invoke(app, ["evaluate", "--profile", "even"], input="")
    assert (result.exit_code, "need --config" in result.stderr) == (1, True)


def test_a_configuration_with_extenders_is_refused(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.partition("profiles:")[0] + "extenders: [{urlPrefix: http://localhost:1}]\n")
    result = runner.invoke(app, ["evaluate", "--config", str(config)], input="")
    assert (result.exit_code, "does not call extenders" in result.stderr) == (1, True)
