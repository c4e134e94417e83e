"""A plugin that writes into what it is handed fails its attempt by name, and changes nothing for others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.framework import CycleState, FilterPlugin, NodeView
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config

Write = Callable[[Any, Any], Any]

WRITES: dict[str, Write] = {
    "the labels of a node": lambda pod, node: node.labels.update(zone="z"),
    "one label of a node": lambda pod, node: node.labels.__setitem__("zone", "z"),
    "the labels of a node object": lambda pod, node: node.node.labels.__setitem__("zone", "z"),
    "the annotations of a node object": lambda pod, node: node.node.annotations.clear(),
    "what a node has": lambda pod, node: node.allocatable.__setitem__("cpu", 1),
    "what a node object has": lambda pod, node: node.node.allocatable.pop("cpu"),
    "the capacity of a node object": lambda pod, node: node.node.status.capacity.setdefault("gpu", "1"),
    "the metadata of a node object": lambda pod, node: node.node.metadata.labels.popitem(),
    "a column": lambda pod, node: node.alone().columns.amounts.allocatable("cpu").fill(0),
    "what is requested on a node": lambda pod, node: node.requested.__setitem__("cpu", 1),
    "the pods of a node": lambda pod, node: node.pods.append(pod),
    "the labels of the pod": lambda pod, node: pod.labels.__setitem__("app", "x"),
    "the annotations of the pod": lambda pod, node: pod.annotations.__setitem__("a", "x"),
    "the labels of another pod": lambda pod, node: node.pods[0].labels.clear(),
}


class Writer(FilterPlugin):
    """Writes where the table says, when it meets the pod `w`."""

    name = "writer"
    write: Write

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None:
        if pod.name == "w":
            type(self).write(pod, node)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=config("NodeAffinity", "writer"), plugins=[Writer], flush_after=None) as cluster:
        cluster.add(make_node("a", labels={"zone": "here"}), make_pod("old", labels={"app": "old"}))
        cluster.settle()
        yield cluster


@pytest.mark.parametrize("what", WRITES)
def test_a_write_fails_the_attempt_and_names_the_plugin(
    cluster: Cluster, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writer, "write", staticmethod(WRITES[what]), raising=False)
    cluster.add(make_pod("w", labels={"app": "web"}))
    cluster.settle(0.3)
    assert cluster.node_of("w") == ""
    note = cluster.events("w")[0].note
    assert note.startswith('running "writer" filter plugin: pod "default/w", node "a": ')
    assert any(text in note for text in ("read-only", "'mappingproxy' object", "'tuple' object"))
    cluster.validate()


def test_selectors_match_what_the_api_server_says_after_a_plugin_tried_to_write(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writer, "write", staticmethod(WRITES["one label of a node"]), raising=False)
    cluster.add(make_pod("w"), make_pod("there", node_selector={"zone": "z"}))
    cluster.add(make_pod("here", node_selector={"zone": "here"}))
    cluster.settle(0.3)
    assert (cluster.node_of("w"), cluster.node_of("there"), cluster.node_of("here")) == ("", "", "a")


def test_a_copy_of_an_object_is_made_in_the_usual_ways() -> None:
    pod = make_pod("p", labels={"app": "web"})
    assert copy.deepcopy(pod) == pod
    assert {**pod.labels, "tier": "front"} == {"app": "web", "tier": "front"}
    changed = dict(pod.labels)
    changed["app"] = "db"
    assert pod.labels == {"app": "web"}


def test_empty_fields_are_omitted_from_json() -> None:
    assert decoding.to_builtins(make_pod("p", labels={}))["metadata"].keys().isdisjoint(("labels", "annotations"))
