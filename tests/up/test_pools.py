import pytest

from moorage.api.decoding import convert
from moorage.api.node import HOSTNAME, ZONE, Node
from moorage.api.resources import NODES
from moorage.config import ConfigError
from moorage.up import pools

GPU = """\
pools:
  - name: plain
    count: 2
    zones: [a, b]
  - name: gpu
    labels: {accelerator: a100}
    taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
    capacity: {cpu: 64, nvidia.com/gpu: "8"}
    unschedulable: true
"""


def test_pools_become_nodes():
    nodes = [convert(NODES, raw) for raw in pools.nodes(pools.parse(GPU))]
    assert [node.name for node in nodes] == ["plain-0", "plain-1", "gpu-0"]
    assert [node.labels.get(ZONE) for node in nodes] == ["a", "b", None]
    gpu = nodes[-1]
    assert isinstance(gpu, Node)
    assert gpu.labels["accelerator"] == "a100"
    assert gpu.labels[HOSTNAME] == "gpu-0"
    assert gpu.unschedulable
    assert [(taint.key, taint.value, taint.effect) for taint in gpu.taints] == [
        ("nvidia.com/gpu", "present", "NoSchedule")
    ]
    assert gpu.status.allocatable == pools.CAPACITY | {"cpu": "64", "nvidia.com/gpu": "8"}


def test_a_number_means_alike_nodes_over_three_zones():
    nodes = pools.nodes(pools.of_count(4))
    assert [node["metadata"]["labels"][ZONE] for node in nodes] == ["zone-a", "zone-b", "zone-c", "zone-a"]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("pools: [{count: 2}]", "pools[0]", "missing required field `name`"),
        ("pools: [{name: a, colour: red}]", "pools[0]", "unknown field `colour`"),
        ("pools: [{name: a, count: many}]", "pools[0].count", "Expected `int`, got `str`"),
        ("pools: [{name: a, count: -1}]", "pools[0].count", "must not be negative"),
        ("pools: [{name: ''}]", "pools[0].name", "Required value"),
        ("pools: [{name: a, capacity: {cpu: lots}}]", "pools[0].capacity.cpu", "lots"),
        ("pools: [{name: a}, {name: a}]", "pools[1].name", 'Duplicate value: "a"'),
        ("pools: [{name: a, count: 99999}, {name: b, count: 2}]", "pools", "100001 nodes"),
        ("nodes: 3", "", "unknown field `nodes`"),
        ("- a", "", "Expected `object`, got `array`"),
        ("pools: [", "", ""),
    ],
)
def test_a_bad_file_is_refused_with_the_field(text, path, message):
    with pytest.raises(ConfigError) as refused:
        pools.parse(text, "cluster.yaml")
    (problem,) = refused.value.problems
    assert problem.path == path
    assert message.lower() in problem.message.lower()
    assert "cluster.yaml" in str(refused.value)
