"""Records are replayed: with their placements, or decided anew; what cannot be used is reported."""

import gzip
import json

import pytest

from moorage import Simulation
from moorage.api.errors import MoorageError
from moorage.sim.recordings import Recording

SCENARIO = """
nodes: [{name: node, count: 5, zones: 2, allocatable: {cpu: 4, memory: 16Gi}}]
workloads:
- {name: web, as: deployment, count: 6, shape: {cpu: 1}, priority: 1}
- {name: a, rate: 12/m, arrival: poisson, shape: {cpu: 1}, lifetime: {exponential: 40s}}
- {name: b, as: job, rate: 2/m, shape: {cpu: 4}, priority: 5, lifetime: {fixed: 30s}}
events:
- {at: 2m, failNode: node-1, for: 1m}
- {at: 3m, drain: node-2}
- {at: 4m, label: {nodes: node-3, labels: {disk: ssd}}}
duration: 10m
"""
HEAD = [
    {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}},
    {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}},
]


def line(event, resource, second=0):
    return json.dumps({"time": f"2026-05-01T00:00:{second:02}Z", "event": event, "resource": resource})


def written(path, *lines, end="\n"):
    path.write_text("\n".join([*(line("Add", obj) for obj in HEAD), *lines]) + end)
    return path


def bound(result):
    return [(placed.pod, placed.node) for placed in result.placements() if placed.node]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "run.jsonl.gz"
    return Simulation(SCENARIO).run(record=path), path


def test_a_record_replays_to_the_recorded_placements(recorded):
    original, path = recorded
    # Another policy would place otherwise; as scheduled, it has no say.
    replayed = Simulation(Recording(path, as_scheduled=True), config=PACKED).run()
    assert replayed.problems == []
    assert bound(replayed) == bound(original)
    assert len(bound(original)) > 100
    for measure in ("arrived", "scheduled", "utilisation.cpu", "utilisation.cpu.stddev", "running"):
        assert replayed[measure] == original[measure], measure
    assert replayed["attempts"] == 0


PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packed
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}
"""


def test_a_record_is_decided_anew_and_twice_the_same(recorded):
    original, path = recorded
    first, second = (Simulation(Recording(path), config=PACKED).run() for _ in range(2))
    assert bound(first) == bound(second) != bound(original)
    assert first["attempts"] > 0


def test_a_record_that_is_cut_off_is_used_up_to_there(recorded, tmp_path):
    _, path = recorded
    text = gzip.decompress(path.read_bytes())
    plain, packed = tmp_path / "cut.jsonl", tmp_path / "cut.jsonl.gz"
    plain.write_bytes(text[: len(text) // 2])
    packed.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for file, words in ((plain, "the file is truncated here"), (packed, "is truncated after line")):
        result = Simulation(Recording(file, as_scheduled=True)).run()
        assert result["scheduled"] > 10
        [problem] = result.problems
        assert words in problem


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("nonsense", "line 3: not JSON"),
        (line("Add", "text"), "line 3: needs time, event (Add, Update or Delete) and resource"),
        (json.dumps({"time": "noon", "event": "Add", "resource": {}}), "line 3: needs time"),
        (
            line("Add", {"kind": "Pod", "metadata": {}}),
            "line 3: Pod: metadata.name: kind and metadata.name are required",
        ),
        (line("Delete", {"kind": "Pod", "metadata": {"name": "nope"}}), '"default/nope" not found'),
    ],
    ids=["json", "resource", "time", "name", "missing"],
)
def test_lines_that_cannot_be_used_are_problems_and_the_others_go_on(tmp_path, bad, message):
    later = line("Add", {**HEAD[1], "metadata": {"name": "q"}}, 5)
    result = Simulation(Recording(written(tmp_path / "r.jsonl", bad, later))).run()
    assert {pod for pod, _ in bound(result)} == {"default/p", "default/q"}
    [problem] = result.problems
    assert message in problem


def test_adds_of_what_is_there_and_updates_of_what_is_not_come_after_a_broken_watch(tmp_path):
    again = {**HEAD[0], "metadata": {"name": "n", "labels": {"a": "b"}}}
    lines = [line("Add", again, 1), line("Update", {**HEAD[1], "metadata": {"name": "q"}}, 2), line("Add", HEAD[1], 3)]
    result = Simulation(Recording(written(tmp_path / "r.jsonl", *lines))).run()
    assert result.problems == []
    assert (result["nodes"], result["scheduled"]) == (1, 2)


@pytest.mark.parametrize("as_scheduled", [True, False])
def test_pods_that_ran_at_the_beginning_keep_their_node_and_end(tmp_path, as_scheduled):
    runs = {**HEAD[1], "metadata": {"name": "r"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    done = {**runs, "status": {"phase": "Succeeded"}}
    lines = [line("Add", runs), line("Update", done, 30)]
    result = Simulation(Recording(written(tmp_path / "r.jsonl", *lines), as_scheduled=as_scheduled)).run()
    assert (result["ended"], result.maximum("running")) == (1, 1 if as_scheduled else 2)
    assert result["pending"] == (1 if as_scheduled else 0)


def test_pending_pods_change_as_recorded(tmp_path):
    gated = {**HEAD[1], "metadata": {"name": "g"}, "spec": {"schedulingGates": [{"name": "wait"}]}}
    lines = [line("Add", gated), line("Update", {**gated, "spec": {}}, 20)]
    result = Simulation(Recording(written(tmp_path / "r.jsonl", *lines))).run()
    [placed] = [placed for placed in result.placements() if placed.pod == "default/g"]
    assert placed.time == 20.0


@pytest.mark.parametrize("text", ["", "nonsense\n"])
def test_a_file_without_a_usable_line_is_refused(tmp_path, text):
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(MoorageError, match="is not a recording"):
        Recording(path)
