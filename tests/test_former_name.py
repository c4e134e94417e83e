"""The former name of the project: it stands nowhere any more, and what was made under it is still read."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from moorage import snapshots
from moorage.api.former_name import FORMER_NAME, FORMER_PREFIX, PREFIX
from moorage.api.resources import NODES, PODS
from moorage.embedded.durable.recovery import DATABASE, FORMER_DATABASE, DataDirError
from moorage.runtime.registry import Registry
from moorage.sim.recordings import RecordedChange, Recording
from moorage.up import kubeconfig
from tests.embedded.durable.kit import open_dir
from tests.store.kit import node

ROOT = Path(__file__).resolve().parent.parent
ANNOTATION = f"{PREFIX.decode()}run-seconds"
FORMER_ANNOTATION = f"{FORMER_PREFIX.decode()}run-seconds"
ALLOWED = {
    "CHANGELOG.md": 60,  # the table of names, old and new
    "docs/README.md": 1,  # one sentence
    "src/moorage/api/former_name.py": 2,  # the two constants by which old files are known
}


def _tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: the list of files is git's")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_the_former_name_occurs_nowhere_but_where_it_is_explained():
    found = {}
    for name in _tracked():
        data = (ROOT / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data) + name.encode()
        if count := text.lower().count(FORMER_NAME.encode()):
            found[name] = count
    assert {name: count for name, count in found.items() if count > ALLOWED.get(name, 0)} == {}
    assert found.keys() == ALLOWED.keys()


def test_a_snapshot_of_that_time_is_read(tmp_path):
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a", "uid": "u"}}
    manifest["metadata"]["annotations"] = {FORMER_ANNOTATION: "3"}  # type: ignore[index]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({FORMER_NAME: {"namespace": "a", "annotations": True}, "pods": [manifest]}))
    cluster = snapshots.load(path)
    assert cluster.namespace == "a"
    assert [obj.metadata.annotations for obj in cluster.objects[PODS]] == [{ANNOTATION: "3"}]


def test_a_record_of_that_time_is_read(tmp_path):
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a", "uid": "u"}}
    manifest["metadata"]["annotations"] = {FORMER_ANNOTATION: "3"}  # type: ignore[index]
    line = {"time": "2026-01-01T00:00:00Z", "event": "Add", "resource": manifest}
    path = tmp_path / "record.jsonl"
    path.write_text(json.dumps(line) + "\n")
    [(_, action)] = Recording(path).actions(0)
    assert isinstance(action, RecordedChange)
    assert action.object.metadata.annotations == {ANNOTATION: "3"}


def _former_data_dir(path: Path) -> None:
    """A directory as a process of that time left it when it was killed: the log is not merged."""
    with open_dir(path / "live") as data:
        data.store.create(NODES, node("n1", annotations={FORMER_ANNOTATION: "3"}))
        data.durability.flush()
        for file in (path / "live").iterdir():
            shutil.copy(file, path / file.name.replace(DATABASE, FORMER_DATABASE))
    shutil.rmtree(path / "live")


def test_a_data_dir_of_that_time_goes_on(tmp_path):
    _former_data_dir(tmp_path)
    for _ in range(2):
        with open_dir(tmp_path) as data:
            found = data.store.get(NODES, "n1").raw
            assert found["metadata"]["annotations"] == {ANNOTATION: "3"}
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(FORMER_NAME)]


def test_a_crash_while_a_data_dir_is_taken_over_loses_nothing(tmp_path):
    _former_data_dir(tmp_path)
    (tmp_path / f"{FORMER_DATABASE}-wal").rename(tmp_path / f"{DATABASE}-wal")
    with open_dir(tmp_path) as data:
        assert data.store.get(NODES, "n1")


def test_a_database_of_another_program_with_the_former_name_stays_as_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / FORMER_DATABASE)) as connection:
        connection.execute("CREATE TABLE notebooks (id INTEGER)")
        connection.commit()
    with pytest.raises(DataDirError, match="another program"):
        open_dir(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [FORMER_DATABASE]


def test_a_kubeconfig_of_that_time_is_replaced(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({"users": [{"name": FORMER_NAME}]}))
    kubeconfig.write(path, "new")
    assert path.read_text() == "new"


def test_a_plugin_in_the_former_entry_point_group_is_named_with_the_new_group(tmp_path, monkeypatch):
    info = tmp_path / "old_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: old-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{FORMER_NAME}.plugins]\nOld = old_plugin:Old\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()
    registry.discover()
    assert "register it in 'moorage.plugins'" in registry.broken["Old"]
