"""Caches: own writes are seen at once, late news change nothing, what is gone stays gone."""

from __future__ import annotations

from typing import Any

from moorage.api.resources import Unstructured
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.framework.ports import Change

Seen = list[tuple[str, str]]


def pod(version: int, name: str = "a", uid: str = "u1", **meta: Any) -> Unstructured:
    return Unstructured(
        {"metadata": {"name": name, "namespace": "d", "uid": uid, "resourceVersion": str(version), **meta}}
    )


def make() -> tuple[Cache, Seen]:
    cache, seen = Cache(kinds.PODS), []

    def handle(old: Unstructured | None, new: Unstructured | None) -> None:
        seen.append((old.resource_version if old else "-", new.resource_version if new else "-"))

    cache.handlers.append(handle)
    return cache, seen


def test_a_write_is_seen_at_once_and_its_echo_is_no_news():
    cache, seen = make()
    cache.wrote(pod(5))
    cache.deliver(Change(kinds.PODS, None, pod(5)))
    cache.deliver(Change(kinds.PODS, pod(5), pod(6)))
    assert seen == [("-", "5"), ("5", "6")]


def test_late_news_do_not_take_a_write_back():
    cache, seen = make()
    cache.deliver(Change(kinds.PODS, None, pod(1)))
    cache.wrote(pod(9))
    cache.deliver(Change(kinds.PODS, pod(1), pod(5)))
    found = cache.get("d/a")
    assert found is not None
    assert found.resource_version == "9"
    assert seen == [("-", "1"), ("1", "9")]


def test_an_answer_that_comes_after_the_deletion_brings_nothing_back():
    cache, _ = make()
    cache.deliver(Change(kinds.PODS, None, pod(1)))
    cache.deliver(Change(kinds.PODS, pod(7), None))
    cache.wrote(pod(6))
    cache.deliver(Change(kinds.PODS, None, pod(6)))
    assert cache.get("d/a") is None


def test_a_new_object_of_the_same_name_is_another_one():
    cache, seen = make()
    cache.deliver(Change(kinds.PODS, None, pod(1)))
    cache.wrote(pod(8, uid="u2"))
    cache.deliver(Change(kinds.PODS, pod(7), None))  # the end of the first
    found = cache.get("d/a")
    assert found is not None
    assert found.uid == "u2"
    assert seen == [("-", "1"), ("1", "-"), ("-", "8")]


def test_a_write_that_the_informer_passed_without_seeing_is_dropped():
    cache, _ = make()
    cache.wrote(pod(5))
    cache.settle(4, {})
    assert cache.get("d/a") is not None
    cache.settle(5, {})
    assert cache.get("d/a") is None


def test_indexes_follow_changes():
    cache, _ = make()
    owner = {"uid": "rs", "controller": True, "kind": "ReplicaSet", "name": "x"}
    cache.add_index("label", lambda obj: obj.labels.values())
    cache.wrote(pod(1, labels={"k": "one"}, ownerReferences=[owner]))
    assert len(cache.find("label", "one")) == len(cache.find("owner", "rs")) == 1
    cache.wrote(pod(2, labels={"k": "two"}))
    assert not cache.find("label", "one")
    assert not cache.find("owner", "rs")
    assert [obj.name for obj in cache.find("label", "two")] == ["a"]
    cache.remove(pod(3))
    assert not cache.find("label", "two")
    assert not cache.in_namespace("d")


def test_the_last_write_of_a_terminating_object_removes_it():
    cache, _ = make()
    cache.wrote(pod(1, finalizers=["x"], deletionTimestamp="2026-01-01T00:00:00Z"))
    assert cache.get("d/a") is not None
    cache.wrote(pod(2, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert cache.get("d/a") is None
