"""docs/architecture.md: what it names exists, and the tool that counts the modules on a pod's way runs."""

import re
import subprocess
import sys

from tests.docs.snippets import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "moorage"
WAY = TEXT.partition("## The way of one pod")[2].partition("Four rules")[0]
MAX_MODULES = 88
"""That a pod of a new template may meet on its way."""
MAX_EXPLAIN_MODULES = 128
"""Modules that `moorage explain` may call for a pending pod of a snapshot."""


def test_the_modules_that_the_page_names_exist():
    parts = re.findall(r"`((?:[a-z_]+/)+[a-z_]+)`", TEXT)
    tables = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", TEXT.partition("## The parts")[2], re.MULTILINE)
    parts += [f"state/{name}" for row in tables for name in re.findall(r"`([a-z_]+)`", row)]
    assert len(parts) > 15
    elsewhere = {part for part in parts if (ROOT / part).exists()}
    for part in set(parts) - elsewhere:
        assert (SOURCE / f"{part}.py").exists() or (SOURCE / part / "__init__.py").exists(), part


def test_the_way_of_one_pod_has_fifteen_steps_at_most_and_its_files_exist():
    steps = re.findall(r"^(\d+)\. ", WAY, re.MULTILINE)
    assert [int(step) for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) <= 15
    files = re.findall(r"`([a-z_/]+\.py)`", WAY)
    assert len(files) > 20
    for file in files:
        assert (SOURCE / file).exists() or (ROOT / file).exists(), file


def traced(*args: str) -> tuple[dict[str, int], int]:
    """Module → calls, and the number of modules, as `tools/trace_pod.py` prints them."""
    command = [sys.executable, str(ROOT / "tools" / "trace_pod.py"), *args]
    result = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    calls = {name: int(number) for number, name in re.findall(r"^ +(\d+) (moorage\S+)$", result.stdout, re.M)}
    [number] = re.findall(r"^(\d+) modules", result.stdout, re.MULTILINE)
    return calls, int(number)


def test_a_pod_meets_few_modules():
    calls, number = traced()
    assert number == len(calls)
    assert 50 < number <= MAX_MODULES
    assert not [name for name in calls if name.startswith(("moorage.testing", "moorage.store", "moorage.sim"))]


def test_an_explanation_meets_few_modules():
    calls, number = traced("explain")
    assert number == len(calls)
    assert 50 < number <= MAX_EXPLAIN_MODULES
    assert {"moorage.cli.explain", "moorage.runtime.questions", "moorage.explain.remedies"} <= set(calls)
    assert not [name for name in calls if name.startswith(("moorage.queue.scheduling", "moorage.client"))]


def test_the_files_on_the_way_are_those_that_a_pod_meets():
    """HTTP is absent from a cluster in memory, and a pod that is bound is not requeued."""
    calls, _ = traced()
    files = set(re.findall(r"`([a-z_/]+\.py)`", WAY)) - {"tools/trace_pod.py"}
    absent = {"client/http_client.py", "scheduler/failing.py", "scheduler/status_writer.py"}
    met = {name.removeprefix("moorage.").replace(".", "/") + ".py" for name in calls}
    assert files - met == absent


def test_the_files_of_everyday_changes_exist():
    table = TEXT.partition("## Where do I change")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)[1:]
    assert len(rows) == 10
    for change, files in rows:
        named = re.findall(r"`([a-z_/.0-9-]+\.[a-z]+)`", files)
        assert len(named) >= 2, change
        assert [file for file in named if not (ROOT / file).exists()] == [], change
