"""NodeResourcesAllocatable: weighted size of nodes, small or large first."""

import pytest

from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

NODES = (
    make_node("small", cpu="4", memory="8Gi"),
    make_node("large", cpu="16", memory="64Gi", extended={"nvidia.com/gpu": "2"}),
)
GIB = 1 << 30


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"resources": [{"name": "memory", "weight": 1}]}, [-8 * GIB, -64 * GIB]),
        ({"mode": "Most", "resources": [{"name": "memory", "weight": 3}]}, [8 * GIB, 64 * GIB]),
        ({"mode": "Most", "resources": [{"name": "nvidia.com/gpu", "weight": 1}]}, [0, 2]),
        ({"mode": "Most", "resources": [{"name": "pods", "weight": 1}]}, [0, 0]),
        ({}, [-((4000 * 2**20 + 8 * GIB) // (2**20 + 1)), -((16000 * 2**20 + 64 * GIB) // (2**20 + 1))]),
        # 64 GiB times this weight has 64 bits and more.
        ({"mode": "Most", "resources": [{"name": "memory", "weight": 1 << 40}]}, [8 * GIB, 64 * GIB]),
    ],
    ids=["memory", "most", "extended resource", "pods are no resource", "defaults", "no overflow"],
)
def test_the_raw_score_is_the_weighted_mean_of_what_a_node_has(args, expected):
    scores = ask("NodeResourcesAllocatable", make_pod("p"), NODES, args=args).raw_scores()
    assert list(scores.values()) == expected


@pytest.mark.parametrize(("mode", "chosen"), [("Least", "small"), ("Most", "large")])
def test_what_runs_on_a_node_does_not_count(mode, chosen):
    config = enabling("NodeResourcesAllocatable", {"mode": mode}, weight=100)
    with Cluster(config=config, verify_reuse=True) as cluster:
        cluster.add(*NODES, *(make_pod(f"p{n}", cpu="100m") for n in range(20)))
        cluster.settle()
        assert set(cluster.bound().values()) == {chosen}


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"mode": "Biggest"}, "mode"),
        ({"resources": [{"name": "cpu", "weight": 0}]}, "resources[0].weight"),
        ({"resource": []}, "resource"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_their_place(args, path):
    with pytest.raises(ConfigError) as caught:
        configure(enabling("NodeResourcesAllocatable", args))
    assert [problem.path for problem in caught.value.problems] == [f"profiles[0].pluginConfig[0].args.{path}"]
