"""A flipped bit in SQLite's log is distinguished from a torn end."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from moorage.api.resources import PODS
from moorage.embedded.durable import recovery
from moorage.embedded.durable.recovery import PAGE_SIZE, DataDirError
from tests.embedded.durable.kit import contents, flip, open_dir
from tests.store.kit import pod

FRAME = 24 + PAGE_SIZE


def crashed(path: Path, transactions: int = 6) -> tuple[Path, list[int]]:
    """A copy of a directory as a kill leaves it, and the numbers of the frames that end a transaction."""
    data = open_dir(path / "live")
    for number in range(transactions):
        data.store.create(PODS, pod(f"p{number}"))
        data.durability.flush()
    copy = path / "crashed"
    copy.mkdir()
    for name in ("moorage.db", "moorage.db-wal"):
        (copy / name).write_bytes((path / "live" / name).read_bytes())
    data.close()
    log = (copy / "moorage.db-wal").read_bytes()
    frames = range(1, (len(log) - 32) // FRAME + 1)
    ends = [n for n in frames if struct.unpack_from(">I", log, 32 + (n - 1) * FRAME + 4)[0]]
    return copy, ends


def test_a_whole_log_is_read_to_its_end(tmp_path):
    path, ends = crashed(tmp_path)
    assert len(ends) == 7  # the start is counted too
    assert recovery.damaged_at(path / "moorage.db-wal", PAGE_SIZE) is None
    with open_dir(path) as data:
        assert len(contents(data.store)) == 6


@pytest.mark.parametrize("where", [4, 23, 24, 700], ids=["commit mark", "checksum", "page", "page's middle"])
def test_damage_with_finished_transactions_behind_it_is_refused(tmp_path, where):
    path, ends = crashed(tmp_path)
    frame = ends[2]
    flip(path / "moorage.db-wal", 32 + (frame - 1) * FRAME + where)
    before = (path / "moorage.db-wal").read_bytes()
    with pytest.raises(DataDirError, match=f"broken at frame {frame}, with finished writes after it"):
        open_dir(path)
    assert (path / "moorage.db-wal").read_bytes() == before


def test_a_damaged_header_does_not_hide_the_log(tmp_path):
    path, _ = crashed(tmp_path)
    flip(path / "moorage.db-wal", 17)
    with pytest.raises(DataDirError, match="broken at its header"):
        open_dir(path)


@pytest.mark.parametrize("cut", [1, 100, FRAME - 1, FRAME + 5])
def test_a_torn_end_is_cut_off(tmp_path, cut):
    path, ends = crashed(tmp_path)
    log = path / "moorage.db-wal"
    end = 32 + ends[-1] * FRAME
    log.write_bytes(log.read_bytes()[: end - cut])
    with open_dir(path) as data:
        assert sorted(name for _, _, name in contents(data.store)) == [f"p{n}" for n in range(5)]


def test_a_transaction_whose_pages_came_out_of_order_is_a_torn_end(tmp_path):
    path, ends = crashed(tmp_path)
    log = path / "moorage.db-wal"
    flip(log, 32 + ends[-2] * FRAME + 24)  # the first page of the last transaction
    assert recovery.damaged_at(log, PAGE_SIZE) is None
    with open_dir(path) as data:
        assert len(contents(data.store)) == 5


def test_frames_of_an_earlier_log_do_not_count(tmp_path):
    path, _ = crashed(tmp_path)
    log = path / "moorage.db-wal"
    data = bytearray(log.read_bytes())
    for frame in range(3, (len(data) - 32) // FRAME):
        struct.pack_into(">II", data, 32 + frame * FRAME + 8, 1, 2)
    log.write_bytes(data)
    assert recovery.damaged_at(log, PAGE_SIZE) is None


@pytest.mark.parametrize("text", [b"", b"short"])
def test_a_log_that_has_not_begun_is_whole(tmp_path, text):
    (tmp_path / "log").write_bytes(text)
    assert recovery.damaged_at(tmp_path / "log", PAGE_SIZE) is None
    assert recovery.damaged_at(tmp_path / "none", PAGE_SIZE) is None
