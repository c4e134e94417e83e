"""NodeResourcesBalancedAllocation: the change that a pod makes to a node; all forms against a plain model."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import ContainerStatus, ResourceRequirements
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask

BALANCED = "NodeResourcesBalancedAllocation"
GPU = "example.com/gpu"
DISK = "ephemeral-storage"


def score(pod: Any, *pods: Any, args: Any = None, **node: Any) -> int | None:
    scores = ask(BALANCED, pod, [make_node("n", **node)], pods, args).scores()
    return None if scores is None else scores["n"]


@pytest.mark.parametrize(
    ("asked", "used", "expected"),
    [
        pytest.param({"memory": "2Gi"}, {"cpu": "4", "memory": "2Gi"}, 80, id="one of two resources"),
        pytest.param({"cpu": "1", "memory": "1Gi"}, {}, 75, id="no change"),
        pytest.param({"cpu": "10"}, {}, 50, id="as bad as can be"),
        pytest.param({"cpu": "10"}, {"memory": "10Gi"}, 100, id="as good as can be"),
        pytest.param({"cpu": "20"}, {}, 50, id="a fraction above one counts as one"),
    ],
)
def test_the_score_is_the_change(asked, used, expected):
    assert score(make_pod("a", **asked), make_pod("b", node="n", **used), cpu="10", memory="10Gi") == expected


def test_pods_that_ask_for_nothing_are_not_scored():
    assert score(make_pod("a")) is None
    assert score(make_pod("a", requests={GPU: 1})) is None
    assert ask(BALANCED, make_pod("a"), [make_node("n")]).raw_scores() == {"n": 0}


def test_scores_without_pre_score():
    asked = ask(BALANCED, make_pod("a", cpu="4"), [make_node("n", cpu="4")])
    assert asked.raw_scores() == {"n": 50}


def test_real_requests_count_and_no_defaults():
    assert score(make_pod("a", cpu="2"), make_pod("b", node="n"), cpu="4", memory="400Mi") == 62


def test_pod_level_requests_and_reported_resizes_count():
    level = make_pod("a", resources=ResourceRequirements(requests={"cpu": "4"}))
    assert score(level, cpu="4") == 50
    pod = make_pod("a", cpu="1")
    report = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "4"}))
    status = msgspec.structs.replace(pod.status, container_statuses=(report,))
    assert score(msgspec.structs.replace(pod, status=status), cpu="4") == 50


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(["cpu"], 75, id="one resource is always in balance"),
        pytest.param(["cpu", "pods"], 75, id="names that are not scored"),
        pytest.param(["cpu", GPU], 75, id="a device not asked for"),
        pytest.param(["cpu", "memory", DISK], 51, id="three"),
    ],
)
def test_configured_resources(resources, expected):
    args = {"resources": [{"name": name, "weight": 1} for name in resources]}
    assert score(make_pod("a", cpu="4"), args=args, cpu="4") == expected


# The plain model

Amounts = dict[str, int]
names = ("cpu", "memory", DISK, GPU)
units = {"cpu": 100, "memory": 77_777_777, DISK: 1_000_003, GPU: 1}
amounts = st.dictionaries(st.sampled_from(names), st.integers(0, 30), max_size=4)


def numbers(given_amounts: dict[str, int]) -> dict[str, int]:
    return {name: amount * units[name] for name, amount in given_amounts.items()}


def quantities(given_amounts: dict[str, int]) -> dict[str, Any]:
    return {name: f"{n}m" if name == "cpu" else n for name, n in numbers(given_amounts).items()}


def plain_balance(requested: dict[str, int], offered: dict[str, int], counted: list[str]) -> int:
    fractions = [min(1.0, requested[n] / offered[n]) for n in counted if offered.get(n, 0)]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)


def plain_score(asks: dict[str, int], used: dict[str, int], offered: dict[str, int], chosen: list[str]) -> int:
    counted = [name for name in chosen if name != GPU or asks.get(GPU, 0)]
    before = {name: used.get(name, 0) for name in names}
    after = {name: before[name] + asks.get(name, 0) for name in names}
    change = plain_balance(after, offered, counted) - plain_balance(before, offered, counted)
    return 50 + math.trunc((50 + change) / 2)


@given(
    amounts,
    st.lists(st.tuples(amounts, amounts), min_size=1, max_size=4),
    st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True),
)
def test_all_forms_agree_with_the_plain_model(asks, nodes, chosen):
    made, running, expected = [], [], {}
    for index, (offered, used) in enumerate(nodes):
        name = f"n{index}"
        offer = quantities({"cpu": 0, "memory": 0, DISK: 0, GPU: 0} | offered)
        allocatable = {**offer, "pods": 110}
        made.append(make_node(name, allocatable=allocatable))
        running.append(make_pod(f"p{index}", node=name, requests=quantities(used)))
        expected[name] = plain_score(numbers(asks), numbers(used), numbers(offered), chosen)
    args = {"resources": [{"name": name, "weight": 1} for name in chosen]}
    scores = ask(BALANCED, make_pod("a", requests=quantities(asks)), made, running, args).scores()
    assert scores == (expected if any(asks.get(name, 0) for name in chosen) else None)
