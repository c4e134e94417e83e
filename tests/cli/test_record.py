"""`moorage record`: what its options refuse. Recording itself is tested in tests/app and tests/cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli.record import _rotation
from moorage.cli.root import app
from tests.cli.running import runner


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--duration", "soon"], "--duration: time: invalid duration"),
        (["--duration", "0s"], "--duration: 0s is not more than 0; write 90s"),
        (["--snapshots", "-1m"], "--snapshots: -1m is not more than 0"),
        (["--rotate", "often"], "--rotate: 'often' is neither a size nor a time; write 100Mi or 1h"),
        (["--rotate", "0"], "--rotate: 0 is not more than 0"),
        (["--rotate", "-5Mi"], "--rotate: '-5Mi' is not more than 0; write 100Mi or 1h"),
        (["day.json"], "the name of a recording must end in .jsonl, .jsonl.gz, .jsonl.zst"),
        (["--kubeconfig", "none.yaml"], "none.yaml"),
        (["--plugin", "a:B"], "need --config"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "kubeconfig.yaml"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: c, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"
    )
    ended = runner.invoke(app, ["record", "--kubeconfig", str(config), *options])
    assert ended.exit_code == 1, ended.output
    assert says in " ".join(ended.output.split())
    assert [file.name for file in Path().iterdir()] == [config.name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", (None, None)), ("100Mi", (100 << 20, None)), ("5000", (5000, None)), ("1M", (10**6, None)),
     ("10m", (None, 600.0)), ("1h30m", (None, 5400.0))],
)  # fmt: skip
def test_files_are_rotated_by_size_or_by_time(text, expected):
    assert _rotation(text) == expected
