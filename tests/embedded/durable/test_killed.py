"""kill -9 under load: what was acknowledged is there after a restart, and nothing else has happened."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moorage.api.resources import PODS
from tests.embedded.durable.kit import open_dir
from tests.embedded.durable.victim import WRITERS


def run_and_kill(path: Path, seed: int) -> list[list[str]]:
    """The lines of a process that was killed at a random moment, whole ones only."""
    rng = random.Random(seed)
    command = [sys.executable, "-m", "tests.embedded.durable.victim", str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        rest = process.stdout.read()
    whole, _, _ = (first + rest).rpartition(b"\n")
    return [line.split() for line in whole.decode().splitlines()]


def may_be(lines: list[list[str]], name: str, before: int | None, found: int | None) -> bool:
    """Whether a pod is as acknowledged last, or as the one write that was still under way made it."""
    version, under_way = before, ""
    for line in lines:
        match line:
            case ["will", verb, pod] if pod == name:
                under_way = verb
            case ["done", verb, pod, number] if pod == name:
                version, under_way = (None if verb == "delete" else int(number)), ""
    if found == version:
        return True
    if found is None:
        return under_way == "delete"
    return under_way == "put" and found > (version or 0)


def kill_and_check(path: Path, seed: int, before: dict[str, int]) -> dict[str, int]:
    lines = run_and_kill(path, seed)
    assert lines[0][0] == "started", lines
    acknowledged = [int(line[3]) for line in lines if line[0] == "done"]
    with open_dir(path) as data:
        found = {stored.name: stored.version for stored in data.store.list(PODS).items}
        assert data.store.version >= max([int(lines[0][1]), *acknowledged])
    for name in (f"p{number}" for number in range(WRITERS)):
        assert may_be(lines, name, before.get(name), found.get(name)), f"seed {seed}: {name} is lost or wrong"
    print(f"seed {seed}: {len(acknowledged)} acknowledged writes, all there")
    return found


def repeat(path: Path, seeds: range) -> None:
    found: dict[str, int] = {}
    for seed in seeds:
        found = kill_and_check(path, seed, found)


def test_nothing_acknowledged_is_lost(tmp_path):
    repeat(tmp_path, range(3))


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_fifty_repetitions(tmp_path):
    repeat(tmp_path, range(100, 150))
