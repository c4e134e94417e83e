"""Acknowledged writes that have gone from the files are noticed at the start, and nothing is changed then."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.api.resources import PODS
from moorage.embedded.durable.recovery import FORMER_DATABASE, PAGE_SIZE, DataDirError
from tests.embedded.durable.kit import contents, files, open_dir
from tests.store.kit import pod

LOG, DATABASE, MARK = "moorage.db-wal", "moorage.db", "moorage.db-mark"
FRAME = 24 + PAGE_SIZE


def killed(folder: Path, pods: int = 6) -> Path:
    """Return a copy of a directory with all its files, as a kill leaves it."""
    data = open_dir(folder / "live")
    for number in range(pods):
        data.store.create(PODS, pod(f"p{number}"))
        data.durability.flush()
    shutil.copytree(folder / "live", folder / "killed")
    data.close()
    return folder / "killed"


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def last_frame(path: Path) -> None:
    cut(path / LOG, (path / LOG).stat().st_size - FRAME)


def only_mark(path: Path) -> None:
    (path / DATABASE).unlink()
    (path / LOG).unlink()


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no log": (lambda path: (path / LOG).unlink(), f"{LOG} is missing"),
    "an empty log": (lambda path: cut(path / LOG, 0), f"the end of {LOG} is missing"),
    "half a header": (lambda path: cut(path / LOG, 16), f"the end of {LOG} is missing"),
    "a log without its end": (last_frame, f"the end of {LOG} is missing"),
    "a log cut at a transaction": (lambda path: cut(path / LOG, 32 + FRAME), f"the end of {LOG} is missing"),
    "no database": (lambda path: (path / DATABASE).unlink(), f"{DATABASE} is missing"),
    "no files but the mark": (only_mark, f"{DATABASE} is missing"),
    "a damaged mark": (lambda path: (path / MARK).write_text("9 1 nonsense\n"), f"{MARK} is damaged"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGE.values(), ids=DAMAGE)
def test_lost_writes_are_reported_and_nothing_is_changed(damage, says, tmp_path):
    path = killed(tmp_path)
    damage(path)
    before = files(path)
    with pytest.raises(DataDirError) as caught:
        open_dir(path)
    message = str(caught.value)
    assert says in message
    assert str(path) in message
    assert "restore" in message
    assert "\n" not in message
    after = files(path)
    assert {name: after[name] for name in before if name != "lock"} == {n: b for n, b in before.items() if n != "lock"}
    assert set(after) == set(before)


def test_the_log_of_the_former_name_without_its_database_is_reported(tmp_path):
    path = killed(tmp_path)
    (path / LOG).rename(path / f"{FORMER_DATABASE}-wal")
    (path / DATABASE).unlink()
    (path / MARK).unlink()
    with pytest.raises(DataDirError, match=f"{FORMER_DATABASE} is missing"):
        open_dir(path)


def test_a_kill_loses_nothing_and_is_no_damage(tmp_path):
    with open_dir(killed(tmp_path)) as data:
        assert len(contents(data.store)) == 6


def test_a_write_that_was_not_acknowledged_may_be_torn(tmp_path):
    path = killed(tmp_path, pods=5)
    mark = (path / MARK).read_bytes()
    shutil.rmtree(tmp_path / "live")
    shutil.rmtree(path)
    path = killed(tmp_path, pods=6)
    (path / MARK).write_bytes(mark)  # the kill came between the commit and the mark
    last_frame(path)
    with open_dir(path) as data:
        assert len(contents(data.store)) == 5


def test_the_older_data_can_be_opened_after_the_mark_is_removed_as_the_message_says(tmp_path):
    path = killed(tmp_path)
    (path / LOG).unlink()
    with pytest.raises(DataDirError, match=rf"remove {MARK} to go on with the older data"):
        open_dir(path)
    (path / MARK).unlink()
    with open_dir(path) as data:
        assert len(contents(data.store)) < 6


@pytest.mark.parametrize("mark", [None, b"", b"\0" * 64], ids=["none", "empty", "zeros"])
def test_a_directory_without_a_mark_is_opened(tmp_path, mark):
    """Directories of earlier versions have none, and a power cut may leave a new file empty."""
    path = killed(tmp_path)
    if mark is None:
        (path / MARK).unlink()
    else:
        (path / MARK).write_bytes(mark)
    with open_dir(path) as data:
        assert len(contents(data.store)) == 6
    assert (path / MARK).read_bytes().strip()


def test_a_lost_start_without_writes_is_noticed_too(tmp_path):
    open_dir(tmp_path / "live").close()
    earlier = (tmp_path / "live" / DATABASE).read_bytes()
    open_dir(tmp_path / "live").close()
    (tmp_path / "live" / DATABASE).write_bytes(earlier)
    with pytest.raises(DataDirError, match="older than the last start"):
        open_dir(tmp_path / "live")
