"""Files with secrets, and clusters on disk, belong to the user alone, whatever was there before."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.api import private_files
from moorage.api.resources import PODS
from moorage.embedded.durable.opening import open_data_dir
from moorage.serving.certificates import PAIR_NAME, ServingCertificate
from moorage.sim.recording_files import RecordingFile
from moorage.snapshots import ClusterObjects, save
from moorage.up import kubeconfig
from tests.store.kit import pod


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """New files are readable for all users unless the code sees to it."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def modes(folder: Path) -> dict[str, str]:
    """Return the modes of a folder and of everything in it."""
    return {path.name: oct(mode(path)) for path in (folder, *folder.iterdir())}


def write_kubeconfig(path: Path) -> None:
    kubeconfig.write(path, kubeconfig.text("https://127.0.0.1:1", "secret", b"ca"))


def write_key(path: Path) -> None:
    path.with_name(f"{PAIR_NAME}.crt").unlink(missing_ok=True)
    ServingCertificate(cert_dir=str(path.parent))


def write_snapshot(path: Path) -> None:
    save(ClusterObjects({}, (), {}, "default"), path, taken="2026-01-01T00:00:00Z")


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "any": ("any", lambda path: private_files.write(path, [b"secret"])),
    "kubeconfig": ("kubeconfig", write_kubeconfig),
    "private key": (f"{PAIR_NAME}.key", write_key),
    "snapshot": ("snapshot.json", write_snapshot),
}


@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_file_is_readable_for_the_user_only_also_if_it_was_there(name, write, tmp_path):
    path = tmp_path / name
    write(path)
    assert mode(path) == 0o600
    path.write_bytes(b"")
    path.chmod(0o644)
    before = path.stat().st_ino
    write(path)
    assert mode(path) == 0o600
    assert path.stat().st_size > 0
    # Another file: a process that has opened the old one never sees the new content.
    assert path.stat().st_ino != before


@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_link_is_replaced_and_not_followed(name, write, tmp_path):
    (tmp_path / "there").mkdir()
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "there" / name
    elsewhere.write_bytes(b"")
    path.symlink_to(elsewhere)
    write(path)
    assert not path.is_symlink()
    assert mode(path) == 0o600
    assert elsewhere.read_bytes() == b""
    assert [file.name for file in path.parent.iterdir() if "tmp" in file.name or "partial" in file.name] == []


def test_a_recording_is_readable_for_the_user_only(tmp_path):
    RecordingFile(tmp_path / "r.jsonl").close()
    assert mode(tmp_path / "r.jsonl") == 0o600


def test_a_new_folder_of_a_kubeconfig_is_for_the_user_only(tmp_path):
    write_kubeconfig(tmp_path / "new" / "kubeconfig")
    assert mode(tmp_path / "new") == 0o700
    tmp_path.chmod(0o755)
    write_kubeconfig(tmp_path / "kubeconfig")
    assert mode(tmp_path) == 0o755  # a folder of other files


def test_the_folder_of_moorage_is_tightened(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".moorage"
    home.mkdir(mode=0o755)
    write_kubeconfig(home / "kubeconfig")
    assert mode(home) == 0o700


def data_dir(path: Path) -> None:
    with open_data_dir(path, time.time) as data:
        data.store.create(PODS, pod(f"p{data.store.version}"))
        data.durability.flush()
        assert set(modes(path).values()) == {"0o700", "0o600"}
        assert len(modes(path)) == 6, "the log and the index of SQLite are there too"


def test_a_data_directory_is_for_the_user_only(tmp_path):
    path = tmp_path / "data"
    data_dir(path)
    assert modes(path) == {"data": "0o700", "lock": "0o600", "moorage.db": "0o600", "moorage.db-mark": "0o600"}


def test_a_data_directory_that_was_open_is_tightened(tmp_path):
    path = tmp_path / "data"
    data_dir(path)
    for file in (path, *path.iterdir()):
        file.chmod(0o777 if file.is_dir() else 0o666)
    data_dir(path)
    assert modes(path) == {"data": "0o700", "lock": "0o600", "moorage.db": "0o600", "moorage.db-mark": "0o600"}


def test_an_empty_folder_becomes_private_and_one_with_other_files_stays_as_it_is(tmp_path):
    empty, shared = tmp_path / "empty", tmp_path / "shared"
    for folder in (empty, shared):
        folder.mkdir(mode=0o755)
    (shared / "notes.txt").write_text("mine")
    (shared / "notes.txt").chmod(0o644)
    for folder in (empty, shared):
        open_data_dir(folder, time.time).close()
    assert modes(empty) == {"empty": "0o700", "lock": "0o600", "moorage.db": "0o600", "moorage.db-mark": "0o600"}
    assert modes(shared) == {
        "shared": "0o755",
        "notes.txt": "0o644",
        "lock": "0o600",
        "moorage.db": "0o600",
        "moorage.db-mark": "0o600",
    }
