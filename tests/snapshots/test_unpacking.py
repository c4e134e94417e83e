"""A compressed file is unpacked up to a limit, and no further."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.cli.root import app
from moorage.sim.recording_files import MAX_LINE
from moorage.sim.recordings import Recording
from moorage.web.sources import transfer
from tests.cli.running import runner

zstandard = pytest.importorskip("zstandard", reason="the extra sim is not installed")
VARIABLE = "MOORAGE_MAX_SNAPSHOT_BYTES"
MIB = 1 << 20
EMPTY: dict[str, list[object]] = {"nodes": [], "pods": []}


def broken_behind(size: int) -> bytes:
    """Return gzip of this many spaces with damage behind them: reading all of it fails in another way."""
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(b" " * size) + packer.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 100


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(MIB))


def refusal(path: Path) -> str:
    with pytest.raises(MoorageError) as caught:
        snapshots.load(path)
    return str(caught.value)


def test_a_bomb_is_not_unpacked_to_its_end(tmp_path):
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(broken_behind(8 * MIB))
    message = refusal(path)
    assert f"{path} unpacks to more than 1048576 bytes" in message
    assert f"set {VARIABLE} to a larger number" in message


def test_a_large_file_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (MIB + 1))
    assert f"{path} has more than 1048576 bytes" in refusal(path)


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "c.json.gz"
    path.write_bytes(gzip.compress(json.dumps(EMPTY).encode() + b" " * MIB))
    assert "unpacks to more" in refusal(path)
    monkeypatch.setenv(VARIABLE, str(2 * MIB))
    assert snapshots.load(path).objects


@pytest.mark.parametrize("text", ["many", "-1", "0", "1e9", "٣"])
def test_a_limit_that_is_not_a_number_is_named(tmp_path, monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    (tmp_path / "c.json").write_text(json.dumps(EMPTY))
    assert refusal(tmp_path / "c.json") == f"{VARIABLE} is {text!r}; expected a number of bytes greater than 0"


def test_an_import_of_the_ui_has_its_own_limit():
    with pytest.raises(MoorageError, match=r"the file unpacks to more than 67108864 bytes.*`moorage up --snapshot`"):
        transfer.read(broken_behind(65 * MIB))


def test_a_snapshot_in_zstandard_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "c.json.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(EMPTY).encode()))
    assert "is compressed with Zstandard; snapshots are read as JSON, YAML or gzip" in refusal(path)


GOOD = '{"time": "2026-01-01T00:00:00Z", "event": "Add", "resource": {"kind": "Node", "metadata": {"name": "n"}}}\n'


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "zstd"])
def test_a_long_line_of_a_recording_ends_it(tmp_path, compress):
    path = tmp_path / "r.jsonl"
    path.write_bytes(compress(GOOD.encode() + b" " * (MAX_LINE + 1) + GOOD.encode()))
    *_, (_, action) = Recording(path).actions(0)
    with pytest.raises(MoorageError, match=rf"line 2 is longer than {MAX_LINE} bytes; used up to there"):
        action(None)  # type: ignore[arg-type]


def test_a_long_case_of_an_evaluation_ends_it(tmp_path):
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * MIB + b"\n[]\n"))
    result = runner.invoke(app, ["evaluate", str(path)])
    assert result.exit_code == 1
    assert f"line 1 is longer than {MIB} bytes" in result.stderr.replace("\n", " ")
