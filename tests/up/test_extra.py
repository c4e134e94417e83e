"""The embedded cluster stands apart: without the extra `up` other commands work, and `up` says what to do."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from moorage.up.process import EXTRA
from tests.docs.snippets import ROOT

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({packages!r})); sys.argv = {argv!r}; "
MAIN = "from moorage.cli import main; main()"
RUN = (
    "import sys, moorage.cli.run, moorage.run.process, moorage.app.scheduler, moorage.manifests, "
    "moorage.explain.evaluate, moorage.testing; print(*sys.modules)"
)


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)


def without_extra(*argv: str) -> subprocess.CompletedProcess[str]:
    return python(WITHOUT.format(packages=list(EXTRA.values()), argv=["moorage", *argv]) + MAIN)


def test_what_run_and_testing_import_has_nothing_of_the_embedded_cluster():
    loaded = python(RUN).stdout.split()
    assert "moorage.run.process" in loaded
    assert [name for name in loaded if name.startswith("moorage.embedded") or name in EXTRA.values()] == []


@pytest.mark.parametrize("command", ["up", "demo"])
def test_without_the_extra_the_end_is_one_sentence(command):
    ended = without_extra(command)
    assert ended.returncode == 1
    assert ended.stderr == (
        "Error: the embedded cluster needs cronsim, google-re2, jsonschema, pyjwt, which are not installed: "
        "pip install 'moorage[up]'\n"
    )


def test_without_the_extra_the_other_commands_work():
    assert without_extra("run", "--help").returncode == 0
    assert without_extra("version").returncode == 0


def test_the_extra_is_what_the_check_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split("[<>=]", entry)[0] for entry in project["optional-dependencies"]["up"]}
    assert declared == set(EXTRA)


def test_the_locks_hold_the_extra_where_it_is_needed_and_name_no_index():
    pinned = {}
    for lock in ("requirements.lock", "requirements-up.lock", "requirements-dev.lock"):
        text = (ROOT / lock).read_text()
        assert not re.search(r"https?://|--index-url|--find-links", text)
        pinned[lock] = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
    image, up, dev = pinned.values()
    assert image.items() < up.items() <= dev.items()
    assert not image.keys() & set(EXTRA)
    assert set(EXTRA) <= up.keys()
