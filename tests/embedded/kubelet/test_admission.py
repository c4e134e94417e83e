"""What a node refuses, with upstream's reasons; and the sums behind it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.taints import Taint
from moorage.embedded.kubelet.decisions import KubeletLoad
from moorage.embedded.kubelet.nodes import Addresses
from moorage.testing.builders import make_node, make_pod


def node(**options: Any) -> Node:
    return make_node("n", **{"cpu": "4", "memory": "8Gi", "pods": 3, **options})


def pod(name: str = "new", **options: Any) -> Pod:
    return make_pod(name, **options)


CASES = {
    "fits": ([], pod(cpu="4"), node(), ""),
    "cpu": (
        [pod("a", cpu="3500m")], pod(cpu="1"), node(),
        "OutOfcpu: Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000",
    ),
    "memory": ([pod("a", memory="6Gi")], pod(memory="3Gi"), node(), "OutOfmemory: "),
    "pods": (
        [pod("a"), pod("b"), pod("c")], pod(), node(),
        "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    ),
    "unknown device": ([], pod(requests={"example.com/gpu": 1}), node(), ""),
    "selector": (
        [], pod(node_selector={"disk": "ssd"}), node(), "NodeAffinity: Predicate NodeAffinity failed: ",
    ),
    "port": (
        [pod("a", ports=[80])], pod(ports=[80]), node(),
        "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    ),
    "other port": ([pod("a", ports=[80])], pod(ports=[81]), node(), ""),
    "taint": (
        [], pod(), node(taints=[Taint(key="k", effect="NoExecute")]),
        "TaintToleration: Predicate TaintToleration failed: ",
    ),
    "a taint that only keeps new pods away": (
        [], pod(), node(taints=[Taint(key="k", effect="NoSchedule")]), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("there", "new", "where", "expected"), CASES.values(), ids=CASES)
def test_judge(there: list[Pod], new: Pod, where: Node, expected: str):
    load = KubeletLoad()
    for one in there:
        load.add(one)
    refused = load.judge(new, where)
    text = "" if refused is None else f"{refused.reason}: {refused.message}"
    assert text.startswith(expected) if expected else not text


def test_sums_stay_right_whatever_comes_and_goes():
    rng, load = random.Random(5), KubeletLoad()
    there: dict[str, Pod] = {}
    for _ in range(500):
        name = f"p{rng.randrange(20)}"
        if rng.random() < 0.4:
            load.remove(pod(name).uid)
            there.pop(name, None)
        else:
            there[name] = pod(name, cpu=f"{rng.randrange(1, 900)}m")
            load.add(there[name])
        fresh = KubeletLoad()
        for one in there.values():
            fresh.add(one)
        assert (load.used("cpu"), load.used("pods")) == (fresh.used("cpu"), len(there))


def test_addresses_are_given_once_and_again_when_they_are_free():
    pool = Addresses("10.9.0.0/28")
    given = [pool.of(str(i)) for i in range(14)]
    assert len(set(given)) == 14
    assert pool.of("3") == given[3]
    with pytest.raises(RuntimeError):
        pool.of("one too many")
    pool.give_back("3")
    assert pool.of("late") == given[3]
    pool.keep("again", given[3])  # taken: the other keeps it
    assert pool.of("late") == given[3]
