"""A data directory gives back what was put into it, or says in one sentence why not and stays untouched."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from moorage.api.errors import Gone
from moorage.api.resources import NODES, PODS, custom
from moorage.embedded.durable.opening import open_data_dir
from moorage.embedded.durable.recovery import DataDirError
from tests.embedded.durable.kit import contents, files, flip, open_dir
from tests.store.kit import NOW, node, pod

WIDGETS = custom("example.com", "v1", "widgets", "Widget")


def fill(path: Path, pods: int = 3) -> dict[tuple[str, str, str], object]:
    """Some life: creations, changes, a binding, a deletion."""
    with open_dir(path) as data:
        store = data.store
        for number in range(pods):
            store.create(PODS, pod(f"p{number}"))
        store.create(NODES, node("n1"))
        store.create(WIDGETS, {"metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 1}})
        store.bind("p0", "default", "n1")
        store.patch(PODS, "p1", {"metadata": {"labels": {"a": "ü"}}}, namespace="default")
        store.delete(PODS, "p2", namespace="default")
        return {**contents(store)}


class TestRestart:
    def test_everything_is_there_again(self, tmp_path):
        before = fill(tmp_path)
        with open_dir(tmp_path) as data:
            assert contents(data.store) == before

    def test_versions_go_on(self, tmp_path):
        fill(tmp_path)
        with open_dir(tmp_path) as data:
            last = data.store.version
            assert last == 9
            assert data.store.create(PODS, pod("new")).version == last + 1

    def test_the_version_of_a_deletion_is_not_given_out_again(self, tmp_path):
        with open_dir(tmp_path) as data:
            data.store.create(PODS, pod("a"))
            gone = data.store.delete(PODS, "a", namespace="default").version
        with open_dir(tmp_path) as data:
            assert data.store.create(PODS, pod("a")).version == gone + 1

    def test_uids_do_not_come_again_though_the_seed_does(self, tmp_path):
        uids = set()
        for name in "abc":
            with open_dir(tmp_path) as data:
                uids.add(data.store.create(PODS, pod(name)).uid)
        assert len(uids) == 3

    def test_an_older_watch_has_to_list_again_and_one_from_the_end_goes_on(self, tmp_path):
        fill(tmp_path)
        with open_dir(tmp_path) as data:
            last = data.store.version
            with pytest.raises(Gone):
                data.store.watch(PODS, resource_version=str(last - 1))
            watch = data.store.watch(PODS, resource_version=str(last))
            data.store.create(PODS, pod("new"))
            data.durability.flush()
            assert [event.type for event in watch.take()] == ["ADDED"]

    def test_a_process_that_ends_without_closing_loses_nothing(self, tmp_path):
        data = open_dir(tmp_path)
        data.store.create(PODS, pod("a"))
        data.durability.flush()
        copy = tmp_path / "copy"
        copy.mkdir()
        for file in tmp_path.glob("moorage.db*"):
            (copy / file.name).write_bytes(file.read_bytes())
        with open_dir(copy) as again:
            assert contents(again.store) == contents(data.store)
        data.close()

    def test_a_crash_while_the_database_was_made_is_no_obstacle(self, tmp_path):
        (tmp_path / "moorage.db.new").write_bytes(b"half a datab")
        with open_dir(tmp_path) as data:
            assert data.store.version == 1
        assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "moorage.db", "moorage.db-mark"]

    def test_missing_directories_are_made(self, tmp_path):
        open_dir(tmp_path / "a" / "b").close()
        assert (tmp_path / "a" / "b" / "moorage.db").exists()


class TestRefused:
    def refuse(self, path: Path, *words: str) -> None:
        ours = path.is_dir() and not path.is_relative_to("/proc")
        before = files(path) if ours else None
        with pytest.raises(DataDirError) as caught:
            open_data_dir(path, lambda: NOW)
        message = str(caught.value)
        assert all(word in message for word in (str(path), *words)), message
        assert "\n" not in message
        if before is not None:
            after = files(path)
            after.pop("lock", None)
            before.pop("lock", None)
            assert after == before

    def test_a_file(self, tmp_path):
        (tmp_path / "f").write_text("x")
        self.refuse(tmp_path / "f", "is a file")
        self.refuse(tmp_path / "f" / "below", "below one")

    def test_a_place_that_cannot_be_written(self):
        # Not even root can make files there.
        self.refuse(Path("/proc/self/moorage"), "cannot be created", "choose one that is writable")
        self.refuse(Path("/proc/self/fdinfo"), "cannot be written", "make it writable")

    def test_a_second_process(self, tmp_path):
        with open_dir(tmp_path):
            self.refuse(tmp_path, "in use by another process (pid ", "choose another directory")

    @pytest.mark.parametrize("text", [b"", b"not a database" * 100, b"SQLite format 3\0"])
    def test_no_database(self, tmp_path, text):
        (tmp_path / "moorage.db").write_bytes(text)
        self.refuse(tmp_path, "is not a database, or its header is lost", "nothing was changed")

    def test_a_database_of_another_program(self, tmp_path):
        connection = sqlite3.connect(tmp_path / "moorage.db")
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        self.refuse(tmp_path, "a database of another program")

    def test_a_newer_format(self, tmp_path):
        fill(tmp_path)
        connection = sqlite3.connect(tmp_path / "moorage.db")
        connection.execute("PRAGMA user_version = 7")
        connection.close()
        self.refuse(tmp_path, "newer Moorage (format 7, this one knows 1)")

    def test_a_torn_database(self, tmp_path):
        fill(tmp_path, pods=200)
        path = tmp_path / "moorage.db"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        self.refuse(tmp_path, "is damaged", "restore the directory from a copy")

    def test_a_changed_byte_in_an_object_names_the_object(self, tmp_path):
        fill(tmp_path)
        path = tmp_path / "moorage.db"
        flip(path, path.read_bytes().index(b'"name":"p1"') + 8)
        self.refuse(tmp_path, "the checksum of Pod default/p1 is wrong")

    def test_lost_and_old_rows(self, tmp_path):
        fill(tmp_path)
        for statement in (
            "DELETE FROM objects WHERE name = 'p1'",
            "UPDATE state SET version = 5",
            "DELETE FROM state",
            "DELETE FROM resources",
        ):
            copy = tmp_path / str(len(statement))
            copy.mkdir()
            (copy / "moorage.db").write_bytes((tmp_path / "moorage.db").read_bytes())
            connection = sqlite3.connect(copy / "moorage.db")
            connection.execute(statement)
            connection.commit()
            connection.close()
            self.refuse(copy, "is damaged")

    @pytest.mark.parametrize("seed", range(40))
    def test_no_changed_byte_goes_unseen(self, tmp_path, seed):
        """Anywhere in the file: either it is refused, or it hit free space and all objects are as before."""
        before = fill(tmp_path, pods=20)
        path = tmp_path / "moorage.db"
        flip(path, path.stat().st_size * seed // 40 + seed)
        try:
            data = open_dir(tmp_path)
        except DataDirError:
            return
        with data:
            assert contents(data.store) == before


@pytest.mark.slow
def test_a_large_cluster_loads_quickly(tmp_path):
    """20,000 pods and 5,000 nodes; measured 1.0 s on the machine of the benchmarks, allowed 5."""
    with open_dir(tmp_path) as data:
        for number in range(5_000):
            data.store.create(NODES, node(f"n{number}"))
        for number in range(20_000):
            data.store.create(PODS, pod(f"p{number}"))
    started = time.perf_counter()
    with open_dir(tmp_path) as data:
        took = time.perf_counter() - started
        assert len(data.store.list(PODS).items) == 20_000
    print(f"loaded in {took:.2f} s")
    assert took < 5
