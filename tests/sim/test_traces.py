"""Tables become workloads by a mapping."""

import gzip

import pytest

from moorage.api.errors import MoorageError
from moorage.sim.fields import FieldError
from moorage.sim.traces import Trace, read_mapping

NODES = "name,cpu,model\nn0,4000,V\nn1,8000,\n"
PODS = "job,cpu,gpu,at,secs,prio\na,500,0,100,60,5\nb,1000,2,103.5,,\n"
MAPPING = """
nodes: {file: nodes.csv, name: "{name}", allocatable: {cpu: "{cpu}m", pods: 10}, labels: {model: "{model}"}}
pods:
  name: "{job}-{number}"
  requests: {cpu: "{cpu}m"}
  annotations: {gpu: "{gpu}", both: "{gpu}/{job}"}
  priority: "{prio}"
"""


def trace(folder, more="  arrival: '{at}'\n  lifetime: '{secs}'", pods=PODS, mapping=MAPPING):
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(pods)
    return Trace(folder / "pods.csv", read_mapping(mapping + more, "m.yaml"), "m.yaml")


def test_rows_become_nodes_and_pods_at_their_times(tmp_path):
    found = trace(tmp_path)
    nodes = list(found.start(0))
    assert [(node.name, node.allocatable["cpu"], node.labels.get("model")) for node in nodes] == [
        ("n0", "4000m", "V"),
        ("n1", "8000m", None),
    ]
    timed = [(time, action.object, action.life.seconds) for time, action in found.actions(0)]
    assert [(time, pod.name, life) for time, pod, life in timed] == [(0.0, "a-0", 60.0), (3.5, "b-1", None)]
    assert [dict(pod.annotations) for _, pod, _ in timed] == [{"both": "0/a"}, {"gpu": "2", "both": "2/b"}]
    assert [pod.spec.priority for _, pod, _ in timed] == [5, None]


def test_compressed_tables_are_read(tmp_path):
    found = trace(tmp_path)
    with gzip.open(tmp_path / "pods.csv.gz", "wt") as file:
        file.write(PODS)
    packed = Trace(tmp_path / "pods.csv.gz", read_mapping(MAPPING + "  interval: 1m", "m.yaml"))
    assert [time for time, _ in packed.actions(0)] == [0.0, 60.0]
    assert len(list(found.actions(0))) == 2


def test_the_end_of_a_pod_may_be_a_time(tmp_path):
    pods = "job,cpu,gpu,at,until,prio\na,1,0,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,\n"
    found = trace(tmp_path, "  arrival: '{at}'\n  end: '{until}'", pods)
    [(time, action)] = found.actions(0)
    assert (time, action.life.seconds) == (0.0, 3600.0)


def test_rows_out_of_order_are_refused_or_sorted(tmp_path):
    pods = "job,cpu,gpu,at,secs,prio\na,1,0,9,,\nb,1,0,4,,\n"
    with pytest.raises(FieldError, match="arrives at 4 after one that arrives at 9; sort the rows"):
        list(trace(tmp_path, pods=pods).actions(0))
    found = trace(tmp_path, "  arrival: '{at}'\n  sort: true", pods)
    assert [(time, action.object.name) for time, action in found.actions(0)] == [(0.0, "b-0"), (5.0, "a-1")]


def test_an_order_file_decides_by_seed_which_rows_arrive_and_which_node_is_first(tmp_path):
    (tmp_path / "order.txt").write_text("1 pods 1 0 1\n1 nodes 1 0\n2 pods 0\n2 nodes 0 1\n")
    found = trace(tmp_path, "  interval: 1s\norder: order.txt")
    assert [action.object.name for _, action in found.actions(1)] == ["b-0", "a-1", "b-2"]
    assert [node.name for node in found.start(1)] == ["n1", "n0"]
    assert [node.name for node in found.start(2)] == ["n0", "n1"]
    with pytest.raises(MoorageError, match="no order for seed 3; choose an existing seed with --seed"):
        list(found.actions(3))


def test_a_shuffled_trace_follows_the_seed(tmp_path):
    pods = "job,cpu,gpu,at,secs,prio\n" + "".join(f"p{i},1,0,0,,\n" for i in range(20))
    found = trace(tmp_path, "  interval: 1s\n  shuffle: true", pods)

    def names(seed):
        return [action.object.name.partition("-")[0] for _, action in found.actions(seed)]

    assert names(1) == names(1) != names(2)
    assert sorted(names(1)) == sorted(names(2))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "pods: needs either arrival"),
        ("  arrival: '{at}'\n  interval: 1s", "pods: needs either arrival"),
        ("  interval: 1s\n  lifetime: '{secs}'\n  end: '{at}'", "lifetime and end exclude each other"),
        ("  arrival: '{at}'\norder: o.txt", "order requires interval"),
        ("  arrival: '{at}'\n  sorted: true", 'pods.sorted: unknown field; did you mean "sort"?'),
    ],
)
def test_mappings_that_do_not_fit_together_are_refused(tmp_path, more, message):
    with pytest.raises(FieldError) as caught:
        trace(tmp_path, more)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("  arrival: '{nope}'", "there is no column 'nope'; the columns are job, cpu, gpu"),
        ("  arrival: '{job}'", "'a' is not a time; write seconds or an RFC 3339"),
    ],
)
def test_columns_that_are_not_there_or_no_times_are_named(tmp_path, more, message):
    with pytest.raises(FieldError) as caught:
        list(trace(tmp_path, more).actions(0))
    assert message in str(caught.value)
