"""Runs with equal seeds make equal decisions, whatever Python's hash seed is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def story(seed: int) -> list[str]:
    """All decisions of one random world, in order, and its end."""
    from tests.scheduler.world import World

    world = World(seed)
    try:
        world.live(120)
        world.heal()
        lines = [
            f"{r.sequence} {r.pod} {r.uid} attempt {r.attempt} at {r.started:.6f}: {r.result} {r.node} "
            f"{r.message!r} woken by {r.woken_by}/{r.woken_hint}"
            for r in world.cluster.scheduler.records
        ]
        lines += [f"{call.time:.6f} {call.verb} {call.resource} {call.key}" for call in world.cluster.faults.calls]
        events = [f"{e.reason} {e.regarding.name}: {e.note}" for e in world.cluster.events()]
        return lines + events + sorted(f"{pod} on {node}" for pod, node in world.cluster.bound().items())
    finally:
        world.cluster.close()


def in_a_process(seed: int, hash_seed: str) -> str:
    code = f"from tests.scheduler.test_determinism import story; print('\\n'.join(story({seed})))"
    path = os.pathsep.join(entry for entry in (str(ROOT), *sys.path) if entry)
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.parametrize("seed", [1, 2026])
def test_two_processes_with_different_hash_seeds_decide_alike(seed):
    print(f"seed {seed}")
    first, second = in_a_process(seed, "0"), in_a_process(seed, "4242")
    lines = first.splitlines()
    assert len(lines) > 100, "something happened"
    assert any("scheduled" in line for line in lines)
    assert first == second


def test_another_seed_decides_otherwise():
    assert story(1) != story(2)
