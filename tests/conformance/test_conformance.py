"""kube-scheduler's own answers, in three ways: on a table built cold, on one reached by detours, and from
memory.

`make conformance` runs the whole collection where it lies beside the project; here is a part of it, by version.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, Resource
from moorage.api.versions import BEHAVIOURS
from moorage.explain.evaluate import EvaluatedCase, Evaluator, default_configuration
from moorage.runtime.reuse.cache import ReuseCache
from moorage.scheduler.choosing import NodeChooser

DATA = Path(__file__).parent / "data"
FAMILIES = (
    "resources", "nodesel", "taints", "ports", "nodename", "affinity", "spread", "spread-mixed", "volumes",
    "preempt", "mixed", "storage", "imagevol", "nsselect", "resize", "sidecars", "strategies", "unfilled",
    "besteffort", "quantities", "nodeaffinity", "oddpreferred", "tolerations", "hostports", "images", "declared",
    "spreading", "defaults", "peers", "disks", "claims", "evict", "evictvolumes", "bare", "workloads",
)  # fmt: skip
Cases = list[dict[str, Any]]


@cache
def recorded(version: str) -> dict[str, Cases]:
    """Return the cases that kube-scheduler of this version has answered, by family."""
    found: dict[str, Cases] = {family: [] for family in FAMILIES}
    with gzip.open(DATA / f"cases-{version}.jsonl.gz", "rt") as lines:
        for line in lines:
            case = json.loads(line)
            found[case["family"]].append(case)
    return found


@pytest.fixture(params=BEHAVIOURS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cases(version: str, family: str) -> Cases:
    return recorded(version)[family]


def load(case: dict[str, Any], version: str) -> EvaluatedCase:
    return EvaluatedCase(case["input"], default_configuration(version))


def answered(case: dict[str, Any], answer: dict[str, Any]) -> None:
    """Compare an answer with the recorded one; of errors only that they are there."""
    expected, found = normal(case["expect"]), normal(answer)
    for verdicts in (expected, found):
        verdicts.pop("error", None)
        for verdict in verdicts.get("plugins", {}).values():
            for part in ("error", "preScore"):
                if part in verdict:
                    verdict[part] = True
    assert found == expected, case["id"]


def normal(verdict: Any) -> Any:
    """Without empty values; lists of names sorted."""
    if isinstance(verdict, dict):
        kept = {key: normal(value) for key, value in verdict.items()}
        return {key: value for key, value in kept.items() if value not in ({}, [], None, "")}
    return sorted(verdict) if isinstance(verdict, list) and all(isinstance(v, str) for v in verdict) else verdict


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cold_table(family, version, cases):
    assert len(cases) > 5
    judge = Evaluator(default_configuration(version))
    for case in cases:
        answer = judge(case)
        assert answer.pop("id") == case["id"]
        answered(case, answer)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_reached_by_detours(family, version, cases):
    """Nodes are removed and added again, pods placed elsewhere, moved and deleted, until all is as it was."""
    for case in buildable(cases):
        world = load(case, version)
        shake(world, random.Random(case["id"]))
        world.engine.cache.validate()
        answered(case, {"plugins": world.by_plugin(), **world.whole_profile()})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reused_answer(family, version, cases):
    """The third pod of a signature, after rows have changed and back, gets the answer of the first."""
    reused = 0
    for case in buildable(cases):
        world = load(case, version)
        reuse = ReuseCache(versions(world))
        chooser = NodeChooser(reuse)
        for _ in range(2):
            world.whole_profile(chooser)
        reused += len(reuse.templates)
        for seed in range(2):
            shake_pods(world, random.Random(f"{case['id']}-{seed}"))
            answered({**case, "expect": without_plugins(case["expect"])}, world.whole_profile(chooser))
    assert family in RARELY_KEPT or reused > len(cases) // 3, "templates were hardly reused"


RARELY_KEPT = ("storage", "claims", "oddpreferred")
"""Families whose pods have claims to bind, or fail while they are scored."""


def buildable(cases: Cases) -> Cases:
    """Leave out cases with arguments that a plugin refuses: no profile can be built for them."""
    return [case for case in cases if "*" not in case["expect"]["plugins"]]


def versions(world: EvaluatedCase) -> Callable[[Resource], int]:
    return lambda resource: world.engine.stores[resource].version


def without_plugins(expect: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in expect.items() if key != "plugins"}


def shake(world: EvaluatedCase, draw: random.Random) -> None:
    """Nodes away and back, in the order that they had; pods to other nodes and back."""
    nodes: list[Node] = [view.node for view in world.nodes]
    order = [node.name for node in world.engine.stores[NODES].list()]
    for node in draw.sample(nodes, len(nodes) // 2):
        world.put(NODES, None, node)
    world.engine.drain()
    shake_pods(world, draw)
    # Snapshot order follows the order of arrival, so all nodes come back in the order of the case.
    for node in nodes:
        world.put(NODES, None, node)
    for node in sorted(nodes, key=lambda node: order.index(node.name)):
        world.put(NODES, node)
    world.engine.drain()


def shake_pods(world: EvaluatedCase, draw: random.Random) -> None:
    pods = [cached.pod for cached in world.engine.cache.pods()]
    names = [view.name for view in world.nodes] or ["nowhere"]
    for pod in draw.sample(pods, len(pods) // 2):
        match draw.randrange(3):
            case 0:
                world.put(PODS, None, pod)
                world.put(PODS, pod)
            case 1:
                elsewhere = moved(pod, draw.choice(names))
                world.put(PODS, None, pod)
                world.put(PODS, elsewhere)
                world.engine.drain()
                world.put(PODS, None, elsewhere)
                world.put(PODS, pod)
            case _:
                guest = msgspec.structs.replace(
                    pod,
                    metadata=msgspec.structs.replace(pod.metadata, name=f"{pod.name}-guest", uid=f"{pod.uid}-guest"),
                )
                world.put(PODS, guest)
                world.engine.drain()
                world.put(PODS, None, guest)
        world.engine.drain()


def moved(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
