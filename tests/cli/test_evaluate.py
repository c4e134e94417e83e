"""`moorage evaluate`: a line of answers for every line of cases, whatever is in them."""

import gzip
import json
import subprocess
import sys
from typing import Any

import pytest

from moorage.api import decoding
from moorage.cli.root import app
from moorage.testing import make_node, make_pod
from tests.cli.running import run_in, runner


def case(number: int, **world: Any) -> str:
    raw = {
        key: [decoding.to_builtins(obj) for obj in value] if isinstance(value, list) else value
        for key, value in world.items()
    }
    pod = decoding.to_builtins(make_pod("p", cpu="1", priority=10))
    return json.dumps({"id": number, "input": {"pod": pod, **raw}})


def answers(text: str, *args: str) -> list[dict[str, Any]]:
    result = runner.invoke(app, ["evaluate", *args], input=text)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_tells_what_plugins_say_where_the_pod_fits_and_how_well():
    nodes = [make_node("a"), make_node("b", cpu="500m"), make_node("c", unschedulable=True)]
    [answer] = answers(case(7, nodes=nodes))
    assert answer["id"] == 7
    assert answer["feasible"] == ["a"]
    assert list(answer["total"]) == ["a"]
    assert answer["plugins"]["NodeResourcesFit"]["filter"] == {
        "b": {"code": "UnschedulableAndUnresolvable", "reasons": ["Insufficient cpu"]}
    }
    assert answer["plugins"]["NodeUnschedulable"]["filter"]["c"]["reasons"] == ["node(s) were unschedulable"]


def test_tells_whom_preemption_would_send_away():
    [answer] = answers(case(1, nodes=[make_node("a", cpu="1")], pods=[make_pod("old", node="a", cpu="1")]))
    assert answer["feasible"] == []
    assert answer["preemption"] == {"code": "Success", "node": "a", "victims": ["old"]}


def test_takes_plugin_arguments():
    fit = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    world = {"nodes": [make_node("a", cpu="1"), make_node("b", cpu="4")]}
    least, most = answers(case(1, **world) + "\n" + case(2, **world, args={"NodeResourcesFit": fit}))
    assert least["plugins"]["NodeResourcesFit"]["score"]["b"] > 50
    assert most["plugins"]["NodeResourcesFit"]["score"] == {"a": 100, "b": 25}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"id": 1, "input": {}}', "pod"),
        ('{"id": 1, "input": {"pod": {}, "nodez": []}}', "input.nodez: unknown"),
        ('{"id": 1, "input": {"pod": {"metadata": {"name": 5}}}}', "metadata.name"),
    ],
)
def test_a_line_that_cannot_be_read_does_not_stop_the_others(line, error):
    wrong, right = answers(f"{line}\n\n{case(2, nodes=[make_node('a')])}\n")
    assert error in wrong["error"]
    assert (right["id"], right["feasible"]) == (2, ["a"])


def test_reads_files_plain_and_compressed(tmp_path):
    text = case(1, nodes=[make_node("a")])
    (tmp_path / "plain.jsonl").write_text(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    assert answers("", str(tmp_path / "plain.jsonl")) == answers("", str(tmp_path / "packed"))


def test_a_file_that_cannot_be_read_gives_one_line(tmp_path):
    result = run_in(tmp_path, "evaluate", "none.jsonl")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Error: none.jsonl cannot be read: No such file or directory\n"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    """As `moorage evaluate cases | head -1`."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"id": 1, "input": {}}\n' * 20000)
    command = [sys.executable, "-m", "moorage", "evaluate", str(cases)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert '"id": 1' in running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""
