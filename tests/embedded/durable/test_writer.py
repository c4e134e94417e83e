"""Transactions: shared by many writers, not visible before they are on disk, taken back when the disk refuses."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from moorage.api.errors import ApiError, BadRequest, NotFound
from moorage.api.resources import PODS
from moorage.embedded.durable.opening import DataDir
from moorage.embedded.durable.writer import Change, Database
from moorage.sim.loop import VirtualClock
from moorage.store.local import LocalClient
from tests.embedded.durable.kit import contents, open_dir
from tests.store.kit import pod


class Disk:
    """Stands between the durability and its database: counts transactions, and fails on demand."""

    def __init__(self, data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[int] = []
        self.error: Exception | None = None
        write = Database.write

        def counted(database: Database, batch: list[Change]) -> None:
            self.batches.append(len(batch))
            if self.error is not None:
                raise self.error
            write(database, batch)

        monkeypatch.setattr(Database, "write", counted)


def full() -> sqlite3.Error:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def on_disk(path: Path, main: Callable[[DataDir], Coroutine[Any, Any, None]]) -> None:
    """Runs a test on an open directory; afterwards a restart must find exactly what memory held."""

    async def run() -> None:
        await main(data)

    data = open_dir(path)
    try:
        asyncio.run(run())
        data.durability.flush()
        before, version = contents(data.store), data.store.version
    finally:
        data.close()
    with open_dir(path) as again:
        assert contents(again.store) == before
        assert again.store.version == version


def test_many_writers_share_a_transaction(tmp_path, monkeypatch):
    async def main(data: DataDir) -> None:
        async def write(number: int) -> None:
            for step in range(4):
                data.store.create(PODS, pod(f"p{number}-{step}"))
                await data.store.settled()

        disk = Disk(data, monkeypatch)
        await asyncio.gather(*(write(number) for number in range(32)))
        assert disk.batches == [32, 32, 32, 32]

    on_disk(tmp_path, main)


def test_of_many_changes_of_one_object_the_last_is_written(tmp_path):
    async def main(data: DataDir) -> None:
        data.store.create(PODS, pod("a"))
        data.store.create(PODS, pod("b"))
        for step in range(5):
            data.store.patch(PODS, "a", {"metadata": {"labels": {"s": str(step)}}}, namespace="default")
        data.store.delete(PODS, "b", namespace="default")
        await data.store.settled()
        data.store.create(PODS, pod("b"))

    on_disk(tmp_path, main)


def test_settled_returns_at_once_when_nothing_is_pending(tmp_path):
    async def main(data: DataDir) -> None:
        coroutine = data.store.settled()
        with pytest.raises(StopIteration):
            coroutine.send(None)

    on_disk(tmp_path, main)


def test_a_watch_tells_nothing_that_is_not_durable(tmp_path):
    async def main(data: DataDir) -> None:
        store = data.store
        early = store.watch(PODS, resource_version="1")
        woken: list[int] = []
        early.wake = lambda: woken.append(store.durable_version)
        store.create(PODS, pod("a"))
        present = store.watch(PODS, send_initial_events=True)
        present.bookmark()
        assert (early.take(), present.take(), store.durable_version) == ([], [], 1)
        await store.settled()
        assert woken == [2]
        assert [event.version for event in early.take()] == [2]
        assert [event.type for event in present.take()] == ["ADDED", "BOOKMARK", "BOOKMARK"]

    on_disk(tmp_path, main)


def test_the_local_client_answers_when_it_is_durable(tmp_path):
    async def main(data: DataDir) -> None:
        client = LocalClient(data.store, VirtualClock(asyncio.get_running_loop()))
        await client.create(PODS, pod("a"))
        assert data.durability.version == data.store.version == 2
        data.store.create(PODS, pod("b"))
        assert (await client.get(PODS, "b", "default")).name == "b"
        assert data.durability.version == 3

    on_disk(tmp_path, main)


class TestDiskErrors:
    def test_on_a_full_disk_writes_fail_and_are_taken_back_until_there_is_space(self, tmp_path, monkeypatch):
        async def main(data: DataDir) -> None:
            store = data.store
            store.create(PODS, pod("old"))
            await store.settled()
            before, disk = contents(store), Disk(data, monkeypatch)
            watch = store.watch(PODS, resource_version=str(store.version))
            disk.error = full()
            store.create(PODS, pod("new"))
            store.delete(PODS, "old", namespace="default")
            with pytest.raises(ApiError, match=r"no room in .* it was taken back") as caught:
                await store.settled()
            assert caught.value.code == 507
            assert contents(store) == before
            assert (store.version, watch.take()) == (2, [])
            disk.error = None
            store.create(PODS, pod("new"))
            await store.settled()
            assert [event.version for event in watch.take()] == [3]

        on_disk(tmp_path, main)

    @pytest.mark.parametrize(
        "error",
        [sqlite3.OperationalError("disk I/O error"), OSError(5, "I/O error"), MemoryError("no memory")],
        ids=["sqlite", "system", "anything"],
    )
    def test_a_broken_disk_ends_all_writing_and_reads_go_on(self, tmp_path, monkeypatch, error):
        async def main(data: DataDir) -> None:
            store = data.store
            store.create(PODS, pod("old"))
            await store.settled()
            before, disk = contents(store), Disk(data, monkeypatch)
            disk.error = error
            store.create(PODS, pod("new"))
            with pytest.raises(ApiError, match="no other is accepted: check the disk and start again"):
                await store.settled()
            disk.error = None
            with pytest.raises(ApiError) as caught:
                store.create(PODS, pod("later"))
            assert caught.value.code == 500
            await store.settled()
            assert contents(store) == before
            with pytest.raises(NotFound):
                store.get(PODS, "new", "default")

        on_disk(tmp_path, main)

    def test_all_that_rests_on_a_failed_write_fails_with_it(self, tmp_path, monkeypatch):
        async def main(data: DataDir) -> None:
            disk = Disk(data, monkeypatch)
            disk.error = full()

            async def write(name: str) -> int:
                data.store.create(PODS, pod(name))
                try:
                    await data.store.settled()
                except ApiError as error:
                    return error.code
                return 201

            first = asyncio.create_task(write("a"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # the thread has the first batch now
            assert set(await asyncio.gather(first, write("b"), write("c"))) == {507}
            assert contents(data.store) == {}

        on_disk(tmp_path, main)

    def test_a_watch_that_began_with_what_was_taken_back_ends(self, tmp_path, monkeypatch):
        async def main(data: DataDir) -> None:
            disk = Disk(data, monkeypatch)
            disk.error = full()
            data.store.create(PODS, pod("a"))
            watch = data.store.watch(PODS)
            with pytest.raises(ApiError):
                await data.store.settled()
            with pytest.raises(ApiError) as caught:
                watch.take()
            assert caught.value.code == 410

        on_disk(tmp_path, main)

    def test_the_real_thing(self, tmp_path):
        """SQLite's own refusal, by a limit on the size of the database."""

        async def main(data: DataDir) -> None:
            database = data.durability._database
            database._connection.execute("PRAGMA max_page_count = 9")
            names: list[str] = []
            codes: list[int] = []
            for number in range(80):
                data.store.create(PODS, pod(f"p{number}"))
                try:
                    await data.store.settled()
                    names.append(f"p{number}")
                except ApiError as error:
                    codes.append(error.code)
            assert len(names) > 5
            assert set(codes) == {507}
            assert sorted(names) == [stored.name for stored in data.store.list(PODS).items]
            database._connection.execute("PRAGMA max_page_count = 1000")
            data.store.create(PODS, pod("again"))
            await data.store.settled()

        on_disk(tmp_path, main)


def test_what_is_no_json_is_refused_before_it_is_stored(tmp_path):
    async def main(data: DataDir) -> None:
        raw = pod("a")
        raw["metadata"]["annotations"] = {"a": "\ud800"}
        with pytest.raises(BadRequest, match="cannot be written as JSON"):
            data.store.create(PODS, raw)
        assert data.store.version == 1
        data.store.create(PODS, pod("b"))
        await data.store.settled()

    on_disk(tmp_path, main)


def test_what_is_written_outside_of_a_loop_is_flushed(tmp_path):
    data = open_dir(tmp_path)
    data.store.create(PODS, pod("a"))
    assert data.durability.version == 1
    data.durability.flush()
    assert data.durability.version == 2
    data.store.create(PODS, pod("b"))

    async def later() -> None:
        await data.store.settled()

    asyncio.run(later())
    assert data.durability.version == 3
    data.close()


def test_a_loop_that_ends_in_the_middle_leaves_nothing_behind(tmp_path):
    data = open_dir(tmp_path)

    async def hasty() -> None:
        data.store.create(PODS, pod("a"))

    for _ in range(5):
        asyncio.run(hasty())
        data.durability.flush()
        data.store.delete(PODS, "a", namespace="default")
    data.close()
    with open_dir(tmp_path) as again:
        assert again.store.version == 11
