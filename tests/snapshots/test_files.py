"""Snapshots: what is kept, what is left out, and files of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Resource, Unstructured, custom
from moorage.plugins.volumes import is_fully_bound
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod

QUOTAS = custom("example.com", "v1", "quotas", "Quota")
TAKEN = "2026-11-17T12:00:00Z"


def saved(tmp_path: Path, name: str = "c.json.gz", **options: Any) -> Path:
    quota = Unstructured(
        {
            "apiVersion": "example.com/v1",
            "kind": "Quota",
            "metadata": {"name": "q", "namespace": "default", "managedFields": [1]},
        }
    )
    objects: dict[Resource, Any] = {
        NODES: [make_node("n")],
        QUOTAS: [quota],
        PODS: [make_pod("p", labels={"app": "x"}, annotations={"secret": "s"})],
    }
    cluster = ClusterObjects(objects, unread={SERVICES: "may not"}, namespace="team")
    path = tmp_path / name
    snapshots.save(cluster, path, taken=TAKEN, **options)
    return path


@pytest.mark.parametrize("name", ["c.json", "c.json.gz"])
def test_what_was_written_is_read(tmp_path, name):
    found = snapshots.load(saved(tmp_path, name), [QUOTAS])
    assert [pod.labels for pod in found.objects[PODS]] == [{"app": "x"}]
    assert list(found.objects)[-1] == PODS
    assert found.objects[QUOTAS][0].name == "q"
    assert found.unread == {SERVICES: "may not"}
    assert found.namespace == "team"


def test_annotations_and_managed_fields_are_omitted(tmp_path):
    text = json.loads(saved(tmp_path, "c.json").read_text())
    assert "secret" not in json.dumps(text)
    assert "managedFields" not in json.dumps(text)
    assert "secret" in saved(tmp_path, "d.json", annotations=True).read_text()


def test_a_claim_that_is_bound_stays_so(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "nodes: []\npvcs:\n- metadata: {name: c, namespace: default, annotations: "
        "{pv.kubernetes.io/bind-completed: 'yes', own: x}}\n  spec: {volumeName: v}\n"
    )
    snapshots.save(snapshots.load(tmp_path / "c.yaml"), tmp_path / "d.json", taken=TAKEN)
    [claim] = snapshots.load(tmp_path / "d.json").objects[PERSISTENT_VOLUME_CLAIMS]
    assert is_fully_bound(claim)
    assert list(claim.annotations) == ["pv.kubernetes.io/bind-completed"]


def test_an_export_of_the_simulator_is_read(tmp_path):
    file = tmp_path / "export.yml"
    file.write_text(
        "nodes:\n- metadata: {name: n}\n  status: {allocatable: {cpu: '4'}}\n"
        "pods:\n- metadata: {name: p, namespace: default}\n  spec: {containers: [{name: c}]}\n"
        "pvs: []\npvcs: []\nschedulerConfig: {profiles: []}\n"
    )
    found = snapshots.load(file)
    assert [node.name for node in found.objects[NODES]] == ["n"]
    assert found.objects[PODS][0].uid, "it has none there, and pods are known by theirs"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "none of the keys|neither JSON nor YAML"),
        (b"{", "neither JSON nor YAML"),
        (b'{"a": 1}', "none of the keys"),
        (b'{"pods": 1}', "pods: a list of objects is expected"),
        (b"\x1f\x8bxx", "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path, content, says):
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    with pytest.raises(MoorageError, match=says):
        snapshots.load(file)


def test_a_broken_object_is_set_aside(tmp_path):
    file = tmp_path / "c.json"
    file.write_text('{"nodes": [{"metadata": {"name": 1}}, {"metadata": {"name": "n"}}], "pods": []}')
    assert [node.name for node in snapshots.load(file).objects[NODES]] == ["n"]
