"""explain, what-if and simulate ask the extenders of the configuration to filter and prioritize, never to bind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from moorage.api import decoding
from moorage.app.clock import SystemClock
from moorage.cli.root import app
from moorage.config import Extender
from moorage.extender.asking import MAX_FAILURES, asked_extenders
from moorage.framework.ports import ExtenderError
from moorage.testing import make_node, make_pod
from tests.cli.running import runner
from tests.extender.kit import POD, THREE, VERBS, extender_server, replying

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FIELDS = "filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt, bindVerb: bind, weight: 5"
SCENARIO = """
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
workloads: [{name: w, count: 3, shape: {cpu: 1m}}]
"""


class Recording:
    """An extender that refuses node `a`, or all nodes, and prefers `c`."""

    def __init__(self, refused: tuple[str, ...] = ("a",)) -> None:
        self.refused = refused
        self.verbs: list[str] = []

    def __call__(self, verb: str, question: Any) -> Any:
        self.verbs.append(verb)
        items = question["Nodes"]["items"]
        names = [node["metadata"]["name"] for node in items]
        if verb == "prioritize":
            return [{"Host": name, "Score": 10 if name == "c" else 0} for name in names]
        kept = [node for node in items if node["metadata"]["name"] not in self.refused]
        return {"Nodes": {"items": kept}, "FailedNodes": {n: "no license" for n in names if n in self.refused}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    objects: dict[str, Any] = {
        "nodes": [make_node(name, cpu="4") for name in "abc"],
        "pods": [make_pod("p", cpu="1"), make_pod("running", cpu="1", node="a")],
    }
    raw = {key: [decoding.to_builtins(obj) for obj in listed] for key, listed in objects.items()}
    (tmp_path / "cluster.json").write_text(json.dumps(raw))
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "pod.yaml").write_text(json.dumps({**raw["pods"][0], "metadata": {"name": "new"}}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, url: str, *args: str, fields: str = FIELDS) -> Result:
    (folder / "config.yaml").write_text(f"{HEAD}extenders: [{{urlPrefix: '{url}', {fields}, httpTimeout: 2s}}]\n")
    where = () if args[0] == "simulate" else ("--snapshot", "cluster.json")
    return runner.invoke(app, [*args, "--config", "config.yaml", *where], env={"COLUMNS": "160"})


def test_explain_shows_what_an_extender_refuses(folder):
    extender = Recording(("a", "b", "c"))
    with extender_server(replying(extender)) as url:
        result = run(folder, url, "explain", "p", "-o", "json")
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert found["message"].startswith("0/3 nodes are available: 3 no license.")
    [group] = found["refusals"]
    assert (group["plugin"], group["reasons"], group["nodes"], group["onlyReason"]) == (url, ["no license"], 3, 3)
    assert set(extender.verbs) == {"filter"}


def test_explain_counts_the_scores_of_an_extender(folder):
    extender = Recording()
    with extender_server(replying(extender)) as url:
        found = json.loads(run(folder, url, "explain", "p", "-o", "json").stdout)
    assert (found["nodes"], found["placement"]["node"]) == ({"total": 3, "feasible": 2}, "c")
    assert set(extender.verbs) == {"filter", "prioritize"}


@pytest.mark.parametrize("command", [("explain", "p"), ("what-if", "-f", "pod.yaml"), ("simulate", "scenario.yaml")])
def test_no_extender_is_called_with_no_extenders(folder, command):
    extender = Recording(("a", "b", "c"))
    with extender_server(replying(extender)) as url:
        result = run(folder, url, *command, "--no-extenders")
    assert (result.exit_code, extender.verbs) == (0, []), result.output


def test_what_if_asks_and_does_not_bind_or_preempt(folder):
    extender = Recording(("a", "c"))
    with extender_server(replying(extender)) as url:
        found = json.loads(run(folder, url, "what-if", "-f", "pod.yaml", "-o", "json").stdout)
    assert found["placed"] == {"default/p": "b", "default/new": "b"}
    assert set(extender.verbs) <= {"filter", "prioritize"}


def test_simulate_asks_and_does_not_bind_or_preempt(folder):
    extender = Recording(("n-0",))
    with extender_server(replying(extender)) as url:
        result = run(folder, url, "simulate", "scenario.yaml", "--jobs", "1", "--output", "json")
    assert result.exit_code == 0, result.output
    assert set(extender.verbs) == {"filter"}, "a single feasible node is not scored"


def test_an_extender_that_cannot_be_reached_is_named(folder):
    result = run(folder, "http://127.0.0.1:1", "explain", "p")
    assert result.exit_code == 3
    assert "failed filter with extender at URL http://127.0.0.1:1/filter" in result.stdout
    ignored = run(folder, "http://127.0.0.1:1", "explain", "p", fields="filterVerb: filter, ignorable: true")
    assert ignored.exit_code == 0
    assert "An extender failed: failed filter with extender at URL http://127.0.0.1:1/filter" in ignored.stdout
    tried = run(folder, "http://127.0.0.1:1", "what-if", "-f", "pod.yaml", fields="filterVerb: filter, ignorable: true")
    assert tried.exit_code == 0
    assert "Warning: an extender failed: failed filter" in tried.stderr


def test_an_extender_that_fails_again_and_again_is_not_called_any_more():
    calls = []

    def broken(verb: str, question: Any) -> Any:
        calls.append(verb)
        return {"Error": "no database"}

    with extender_server(replying(broken)) as url:
        given = Extender(**{"url_prefix": url, "http_timeout": 2.0, **VERBS})
        with asked_extenders([given], SystemClock()) as [extender]:
            for _ in range(MAX_FAILURES + 3):
                with pytest.raises(ExtenderError, match="no database"):
                    extender.filter(POD, THREE).send(None)
    assert len(calls) == MAX_FAILURES


def test_nothing_runs_without_extenders():
    with asked_extenders([], SystemClock()) as found:
        assert found == []
