"""/moorage/v1/snapshot: the cluster as the scheduler sees it, like a file of `moorage snapshot`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from moorage import snapshots
from moorage.api.resources import NODES, PODS
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.endpoints.asking import Asker
from tests.endpoints.test_views import CONFIG, Doorman


@pytest.fixture
def ask() -> Iterator[Asker]:
    with Cluster(config=CONFIG, plugins=[Doorman]) as cluster:
        cluster.add(make_node("n", cpu="2"))
        cluster.settle()
        cluster.add(make_pod("small", cpu="1", annotations={"secret": "s"}), make_pod("big", cpu="4"))
        cluster.add(make_pod("held", cpu="1", labels={"wait": "yes"}))
        cluster.settle()
        yield Asker(cluster)


def test_assumed_pods_are_on_their_nodes(ask):
    found = snapshots.read(b"".join(ask.snapshot()), "here")
    assert [node.name for node in found.objects[NODES]] == ["n"]
    assert {pod.name: pod.spec.node_name for pod in found.objects[PODS]} == {"small": "n", "big": "", "held": "n"}
    assert ask.cluster.pod("held").spec.node_name == "", "it has not been bound"


def test_annotations_are_omitted_unless_they_are_asked_for(ask):
    assert b"secret" not in gzip.decompress(b"".join(ask.snapshot()))
    assert b"secret" in gzip.decompress(b"".join(ask.snapshot(annotations=True)))


def test_the_loop_is_asked_once_and_blocks_are_small(ask):
    ask.cluster.add(make_nodes(500))
    ask.cluster.settle()
    blocks = ask.snapshot()
    assert ask.bridge.calls == 1
    text = gzip.decompress(b"".join(blocks))
    assert len(blocks) > len(text) // (2 * snapshots.BLOCK)
    assert max(map(len, blocks)) < snapshots.BLOCK
