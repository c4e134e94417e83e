"""Equal parts of pods are kept once, and nothing is different."""

from __future__ import annotations

import copy

from moorage.api import decoding
from moorage.snapshots.cluster import SharedParts
from moorage.testing import make_pod


def test_pods_of_one_template_share_what_is_equal_and_keep_what_is_not():
    same, other = make_pod("a", cpu="1", labels={"app": "x"}), make_pod("b", cpu="1", labels={"app": "x"})
    different = make_pod("c", cpu="2", labels={"app": "y"})
    before = [decoding.encode(pod) for pod in (same, other, different)]
    assert other.spec.containers is not same.spec.containers
    parts = SharedParts()
    for pod in (same, other, different):
        parts.share(pod)
    assert other.spec.containers is same.spec.containers
    assert other.metadata.labels is same.metadata.labels
    assert different.spec.containers is not same.spec.containers
    assert [decoding.encode(pod) for pod in (same, other, different)] == before


def test_parts_beyond_the_bound_are_not_remembered(monkeypatch):
    monkeypatch.setattr("moorage.snapshots.cluster.MAX_SHARED", 1)
    parts, pods = SharedParts(), [make_pod(name, cpu="1", labels={"app": name}) for name in "aab"]
    pods.append(copy.deepcopy(pods[2]))
    for pod in pods:
        parts.share(pod)
    assert pods[1].metadata.labels is pods[0].metadata.labels
    assert pods[3].metadata.labels is not pods[2].metadata.labels
