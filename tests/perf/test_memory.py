"""Nothing stays of pods with names that no other pod has, whatever a tenant names. The speed and MB do not matter."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys

import pytest

from moorage.api import recent
from perf import memory


@pytest.mark.parametrize("kind", memory.KINDS)
def test_rounds_of_new_names_leave_no_entries(kind: str) -> None:
    others = memory.held()  # by clusters of other tests in this process
    rounds = memory.Rounds(kind, 10)

    async def run(number: int) -> None:
        for _ in range(number):
            await rounds.run(50)

    # Label sets without pods are kept up to a number of labels, which one label a pod reaches late.
    asyncio.run(run(45 if kind == "namespaces" else 2))
    before = rounds.entries()
    asyncio.run(run(2))

    assert rounds.entries() == before
    ours = {name: before[name] - others[name] for name in others}
    assert ours["QueuedPod"] == ours["RejectedGroup"] == ours["RowHeldTerm"] == 0
    assert ours["PodEntry"] == len(rounds.world.engine.cache)


def test_the_script_prints_the_memory_of_each_round() -> None:
    command = [sys.executable, "-m", "perf.memory", "labels", "--nodes", "5", "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("labels ")
    assert "MB" in done.stdout


def test_the_script_names_the_kinds_that_it_knows() -> None:
    command = [sys.executable, "-m", "perf.memory", "nope"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "there is no kind 'nope'; known kinds are resources, labels" in done.stderr


@pytest.mark.parametrize("kind", memory.KINDS)
def test_caches_forget_what_only_deleted_pods_used(kind: str) -> None:
    """Except for a few objects: the decision records, which have their own limit, are the only history."""
    rounds = memory.Rounds(kind, 10)
    rounds.world.engine.records.max_bytes = 0

    def blocks() -> int:
        recent.forget_unused()
        recent.forget_unused()
        gc.collect()
        return sys.getallocatedblocks()

    asyncio.run(rounds.run(50))
    before = blocks()
    asyncio.run(rounds.run(100))
    pods_and_caches = sys.getallocatedblocks() - before
    asyncio.run(rounds.run(100))
    remaining = blocks() - before
    assert remaining < 2000 < pods_and_caches, (remaining, pods_and_caches)
