"""The state of a cluster when its recording ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.errors import MoorageError
from moorage.api.resources import NODES, PODS, custom
from moorage.sim.last_state import last_state
from moorage.testing import make_node, make_pod

QUEUES = custom("example.com", "v1", "queues", "Queue")


def recording(folder: Path, *changes: tuple[str, str, Any]) -> Path:
    """Write a recording of (event, kind, object), a second apart."""
    path = folder / "day.jsonl"
    with path.open("w") as file:
        for second, (event, kind, obj) in enumerate(changes):
            raw = obj if isinstance(obj, dict) else {**decoding.to_builtins(obj), "apiVersion": "v1"}
            line = {"time": f"2026-01-01T00:00:{second:02d}Z", "event": event, "resource": {**raw, "kind": kind}}
            file.write(json.dumps(line) + "\n")
    return path


def test_changes_and_deletions_count_in_order(tmp_path):
    path = recording(
        tmp_path,
        ("Add", "Node", make_node("a")),
        ("Add", "Pod", make_pod("p")),
        ("Add", "Pod", make_pod("gone")),
        ("Update", "Pod", make_pod("p", node="a")),
        ("Delete", "Pod", make_pod("gone")),
        ("Add", "Pod", make_pod("done", node="a")),
        ("Update", "Pod", make_pod("done", node="a", phase="Succeeded")),
    )
    found = last_state(path)
    assert [node.name for node in found.objects[NODES]] == ["a"]
    assert [(pod.key, pod.spec.node_name) for pod in found.objects[PODS]] == [("default/p", "a")]
    assert list(found.objects)[-1] == PODS


def test_objects_without_a_uid_get_one(tmp_path):
    raw = {"apiVersion": "v1", "metadata": {"name": "p", "namespace": "team"}, "spec": {"containers": []}}
    [pod] = last_state(recording(tmp_path, ("Add", "Pod", raw))).objects[PODS]
    assert pod.uid == "pods/team/p"


def test_custom_kinds_are_read_if_they_are_known(tmp_path):
    raw = {"apiVersion": "example.com/v1", "metadata": {"name": "q", "namespace": "team"}}
    path = recording(tmp_path, ("Add", "Node", make_node("a")), ("Add", "Queue", raw))
    assert [obj.key for obj in last_state(path, [QUEUES]).objects[QUEUES]] == ["team/q"]
    assert QUEUES not in last_state(path).objects


def test_a_file_that_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(MoorageError, match="is not a recording"):
        last_state(path)
