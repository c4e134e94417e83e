"""Shell completion: names of a snapshot and a kubeconfig; nothing for what cannot be read or does not answer."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from moorage import snapshots
from moorage.api.resources import NODES, PODS
from moorage.cli import completing
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod


def context(**params: Any) -> Any:
    return SimpleNamespace(params=params)


@pytest.fixture
def snapshot(tmp_path):
    pods = [make_pod("web-1"), make_pod("web-2", namespace="team"), make_pod("db")]
    objects = ClusterObjects({NODES: [make_node("a"), make_node("b")], PODS: pods})
    snapshots.save(objects, tmp_path / "c.json", taken="2026-01-01T00:00:00Z")
    return tmp_path / "c.json"


def test_pods_nodes_and_contexts_are_proposed(snapshot, tmp_path):
    assert completing.pods(context(snapshot=snapshot), "web") == ["web-1", "web-2"]
    assert completing.pods(context(snapshot=snapshot, namespace="team"), "") == ["web-2"]
    assert completing.nodes(context(snapshot=snapshot), "") == ["a", "b"]
    (tmp_path / "kube").write_text("contexts: [{name: staging}, {name: production}]\n")
    assert completing.contexts(context(kubeconfig=str(tmp_path / "kube")), "sta") == ["staging"]


@pytest.mark.parametrize("complete", [completing.pods, completing.nodes, completing.contexts])
def test_what_cannot_be_read_proposes_nothing(complete, tmp_path):
    (tmp_path / "broken").write_text("contexts: 5\n")
    for name in ("none", "broken"):
        assert complete(context(kubeconfig=str(tmp_path / name)), "") == []


def test_a_server_that_does_not_answer_proposes_nothing(snapshot, monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(completing, "SECONDS", 0.05)
    monkeypatch.setattr(completing, "_names", lambda *_: released.wait(30))
    try:
        assert completing.nodes(context(snapshot=snapshot), "") == []
    finally:
        released.set()
