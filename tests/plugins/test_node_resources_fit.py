"""NodeResourcesFit: free resources, reasons and codes, strategies, hints; all forms against a plain model."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import ContainerStatus, Pod, ResourceRequirements
from moorage.api.resource_weights import UtilizationShapePoint
from moorage.api.resources import PODS, Unstructured
from moorage.framework.events import QueueingHint
from moorage.framework.status import Code
from moorage.plugins.node_resources_fit import plugin
from moorage.plugins.node_resources_fit.scoring import shape_table
from moorage.state.pod_entry import PodEntry
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_container
from tests.plugins.one_plugin import ask

FIT = "NodeResourcesFit"
GPU = "example.com/gpu"
U, UU = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def fit(pod: Pod, *pods: Pod, args: Any = None, **node: Any) -> Any:
    """The verdict on one node with these pods."""
    running = [msgspec.structs.replace(p, spec=msgspec.structs.replace(p.spec, node_name="n")) for p in pods]
    return ask(FIT, pod, [make_node("n", **node)], running, args).refused().get("n")


@pytest.mark.parametrize(
    ("asked", "node", "verdict"),
    [
        pytest.param({}, {"cpu": "0", "memory": "0"}, None, id="nothing asked, nothing needed"),
        pytest.param({"cpu": "1"}, {"cpu": "1"}, None, id="exactly full"),
        pytest.param({"cpu": "1001m"}, {"cpu": "1"}, (UU, ("Insufficient cpu",)), id="larger than the node"),
        pytest.param({}, {"pods": 0}, (U, ("Too many pods",)), id="no place for a pod"),
        pytest.param(
            {"cpu": "2", "memory": "2Gi"},
            {"cpu": "1", "memory": "1Gi", "pods": 0},
            (UU, ("Too many pods", "Insufficient cpu", "Insufficient memory")),
            id="all that is missing is told",
        ),
        pytest.param(
            {"requests": {"ephemeral-storage": "2Gi"}},
            {"storage": "1Gi"},
            (UU, ("Insufficient ephemeral-storage",)),
            id="ephemeral storage",
        ),
        pytest.param({"requests": {GPU: 1}}, {}, (UU, (f"Insufficient {GPU}",)), id="a device nobody has"),
        pytest.param({"requests": {GPU: 0}}, {}, None, id="zero of a device is nothing"),
        pytest.param({"requests": {"unknown": 5}}, {}, None, id="names that mean nothing are ignored"),
        pytest.param(
            {"requests": {"hugepages-2Mi": "4Mi"}},
            {"extended": {"hugepages-2Mi": "2Mi"}},
            (UU, ("Insufficient hugepages-2Mi",)),
            id="huge pages",
        ),
        pytest.param({"cpu": "9Ei"}, {"cpu": "9Ei"}, None, id="absurd amounts do not overflow"),
    ],
)
def test_free_resources_of_an_empty_node(asked, node, verdict):
    assert fit(make_pod("a", **asked), **node) == verdict


def test_preemption_can_help_where_the_node_itself_is_large_enough():
    assert fit(make_pod("a", cpu="3"), make_pod("b", cpu="2"), cpu="4") == (U, ("Insufficient cpu",))


def test_one_hopeless_resource_makes_the_whole_verdict_hopeless():
    pod = make_pod("a", cpu="3", requests={GPU: 2})
    verdict = fit(pod, make_pod("b", cpu="2"), cpu="4", extended={GPU: 1})
    assert verdict == (UU, ("Insufficient cpu", f"Insufficient {GPU}"))


@pytest.mark.parametrize(
    ("args", "refused"),
    [
        pytest.param({"ignoredResources": [GPU]}, False, id="by name"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, False, id="by group"),
        pytest.param({"ignoredResources": ["example.com/other"]}, True, id="another one"),
        pytest.param({"ignoredResources": ["cpu"]}, True, id="only extended ones can be ignored"),
    ],
)
def test_ignored_resources(args, refused):
    pod = make_pod("a", cpu="9" if args == {"ignoredResources": ["cpu"]} else "1", requests={GPU: 1})
    assert (fit(pod, args=args) is not None) is refused


def test_pod_level_requests_are_filtered_by_and_not_scored_by():
    pod = make_pod("a", cpu="100m", resources=ResourceRequirements(requests={"cpu": "3"}))
    assert fit(pod, cpu="2") == (UU, ("Insufficient cpu",))
    # 100m of 2 cpu and the default 200Mi of 2000Mi: 95 % and 90 % stay free.
    assert ask(FIT, pod, [make_node("n", cpu="2", memory="2000Mi")]).scores() == {"n": 92}


def test_a_resize_reported_for_a_waiting_pod_changes_nothing():
    pod = make_pod("a", cpu="1")
    report = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "9"}))
    pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, container_statuses=(report,)))
    assert fit(pod, cpu="2") is None


def test_the_largest_init_container_and_overhead_count():
    pod = make_pod("a", cpu="1", init_containers=[make_container("i", cpu="3")], overhead={"cpu": "1"})
    assert fit(pod, cpu="3999m") == (UU, ("Insufficient cpu",))
    assert fit(pod, cpu="4") is None


def strategy(kind: str, resources: Any = None, shape: Any = None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": kind}
    if resources is not None:
        block["resources"] = [{"name": name, "weight": weight} for name, weight in resources.items()]
    if shape is not None:
        points = [{"utilization": at, "score": score} for at, score in shape]
        block["requestedToCapacityRatio"] = {"shape": points}
    return {"scoringStrategy": block}


@pytest.mark.parametrize(
    ("args", "score"),
    [
        pytest.param(strategy("LeastAllocated"), 58, id="least: (66 + 50) / 2"),
        pytest.param(strategy("MostAllocated"), 41, id="most: (33 + 50) / 2"),
        pytest.param(strategy("LeastAllocated", {"cpu": 3, "memory": 1}), 62, id="weights"),
        pytest.param(strategy("LeastAllocated", {"cpu": 1, GPU: 5}), 66, id="a device not asked for"),
        pytest.param(strategy("LeastAllocated", {"pods": 1}), 0, id="names that are not scored"),
        pytest.param(strategy("RequestedToCapacityRatio", shape=[(0, 0), (100, 10)]), 42, id="ratio, rounded"),
        pytest.param(strategy("RequestedToCapacityRatio", shape=[(40, 0), (100, 10)]), 16, id="ratio: no cpu"),
    ],
)
def test_strategies(args, score):
    node = make_node("n", cpu="3", memory="2Gi", extended={GPU: 4})
    assert ask(FIT, make_pod("a", cpu="1", memory="1Gi"), [node], args=args).scores() == {"n": score}


def test_a_device_is_scored_where_it_is_asked_for_and_present():
    pod = make_pod("a", cpu="1", memory="1Gi", requests={GPU: 1})
    nodes = [make_node("with", extended={GPU: 2}), make_node("without")]
    args = strategy("MostAllocated", {GPU: 1})
    assert ask(FIT, pod, nodes, args=args).scores() == {"with": 50, "without": 0}


def test_containers_without_requests_count_with_defaults():
    node = make_node("n", cpu="1", memory="2000Mi")
    assert ask(FIT, make_pod("a"), [node], [make_pod("b", node="n")]).scores() == {"n": 80}


def test_scores_without_pre_score():
    asked = ask(FIT, make_pod("a", cpu="1", memory="1Gi"), [make_node("n", cpu="2", memory="2Gi")])
    assert asked.raw_scores() == {"n": 50}


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated"])
def test_amounts_beyond_float64_are_scored_exactly(kind):
    capacity = 2**60 + 3
    ask_for = capacity // 100 - 1  # a hair below one percent: rounding would show
    pod = make_pod("a", memory=ask_for)
    asked = ask(FIT, pod, [make_node("n", memory=capacity)], args=strategy(kind, {"memory": 1}))
    assert asked.scores() == {"n": 99 if kind == "LeastAllocated" else 0}


def test_a_falling_line_is_cut_towards_zero():
    table = shape_table((UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=70)))
    assert (table[0], table[1], table[69], table[70], table[100]) == (100, 99, 2, 0, 0)


# The plain model: upstream's rules as obvious loops over plain numbers.

Amounts = dict[str, int]
names = ("cpu", "memory", GPU)
amounts = st.dictionaries(st.sampled_from(names), st.integers(0, 12), max_size=3)
shapes = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=4, unique_by=lambda p: p[0])
strategies = st.one_of(
    st.builds(strategy, st.sampled_from(["LeastAllocated", "MostAllocated"]), st.none() | st.just({"cpu": 2, GPU: 3})),
    st.builds(
        strategy, st.just("RequestedToCapacityRatio"), st.just({"cpu": 1, "memory": 3, GPU: 2}), shapes.map(sorted)
    ),
)


def plain_points(block: Any, requested: int, capacity: int) -> int:
    if block["type"] == "LeastAllocated":
        return 0 if requested > capacity else (capacity - requested) * 100 // capacity
    used = 100 if requested > capacity else requested * 100 // capacity
    if block["type"] == "MostAllocated":
        return used
    shape = block["requestedToCapacityRatio"]["shape"]
    points: list[tuple[int, int]] = [(p["utilization"], p["score"] * 10) for p in shape]
    for index, (at, score) in enumerate(points):
        if used <= at:
            if index == 0:
                return score
            before, low = points[index - 1]
            return low + math.trunc((score - low) * (used - before) / (at - before))
    return points[-1][1]


def plain_score(block: Any, asks: Amounts, taken: Amounts, offered: Amounts) -> int:
    total = weights = 0
    for spec in block.get("resources") or [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]:
        name, weight = spec["name"], spec["weight"]
        if not offered.get(name, 0) or (name == GPU and not asks.get(GPU, 0)):
            continue
        points = plain_points(block, taken[name] + asks.get(name, 0), offered[name])
        if points > 0 or block["type"] != "RequestedToCapacityRatio":
            total, weights = total + points * weight, weights + weight
    if not weights:
        return 0
    return math.floor(total / weights + 0.5) if "requestedToCapacityRatio" in block else total // weights


def plain_verdict(asks: dict[str, int], taken: dict[str, int], count: int, offered: dict[str, int], places: int) -> Any:
    reasons = ["Too many pods"] if count + 1 > places else []
    lacking = [n for n in names if asks.get(n, 0) > 0 and asks[n] > offered.get(n, 0) - taken.get(n, 0)]
    reasons += [f"Insufficient {name}" for name in lacking]
    hopeless = any(asks[name] > offered.get(name, 0) for name in lacking)
    return ((UU if hopeless else U), tuple(reasons)) if reasons else None


def in_units(given_amounts: dict[str, int]) -> dict[str, Any]:
    """cpu in tenths, memory in hundreds of Mi, devices one by one."""
    units = {"cpu": "{}00m", "memory": "{}00Mi", GPU: "{}"}
    return {name: units[name].format(amount) for name, amount in given_amounts.items()}


def in_numbers(given_amounts: dict[str, int]) -> dict[str, int]:
    units = {"cpu": 100, "memory": 100 * 1024 * 1024, GPU: 1}
    return {name: amount * units[name] for name, amount in given_amounts.items()}


DEFAULTS = {"cpu": 100, "memory": 200 * 1024 * 1024}


def nonzero(load: Amounts, name: str) -> int:
    return in_numbers(load)[name] if name in load else DEFAULTS.get(name, 0)


@given(
    amounts,
    st.lists(st.tuples(amounts, st.integers(0, 4), st.lists(amounts, max_size=3)), min_size=1, max_size=4),
    strategies,
)
def test_all_forms_agree_with_the_plain_model(asks, nodes, args):
    made, running, verdicts, scores = [], [], {}, {}
    mine = in_numbers(asks)
    for index, (offered, places, loads) in enumerate(nodes):
        name = f"n{index}"
        offer = in_units({"cpu": 0, "memory": 0, GPU: 0} | offered)
        extended = {GPU: offer.pop(GPU)}
        made.append(make_node(name, pods=places, extended=extended, **offer))
        for number, load in enumerate(loads):
            running.append(make_pod(f"{name}-{number}", node=name, requests=in_units(load)))
        sums = {n: sum(in_numbers(load).get(n, 0) for load in loads) for n in names}
        verdict = plain_verdict(mine, sums, len(loads), in_numbers(offered), places)
        if verdict is not None:
            verdicts[name] = verdict
        taken = {n: sum(nonzero(load, n) for load in loads) for n in names}
        scores[name] = plain_score(args["scoringStrategy"], DEFAULTS | mine, taken, in_numbers(offered))
    asked = ask(FIT, make_pod("a", requests=in_units(asks)), made, running, args)
    assert asked.refused() == verdicts
    assert asked.scores() == scores


# Hints

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def running(**requests: Any) -> Pod:
    return make_pod("b", node="n", **requests)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(make_pod("b", node="n"), None, QUEUE, id="a running pod left, whatever it used"),
        pytest.param(make_pod("b", nominated="n"), None, QUEUE, id="a nominated pod left"),
        pytest.param(make_pod("b"), None, SKIP, id="a waiting pod left"),
        pytest.param(make_pod("b", node="n", cpu="2"), make_pod("b", node="n", cpu="1"), QUEUE, id="cpu freed"),
        pytest.param(
            make_pod("b", node="n", memory="2Gi"), make_pod("b", node="n", memory="1Gi"), SKIP, id="memory freed"
        ),
        pytest.param(make_pod("b", cpu="2"), make_pod("b", cpu="1"), SKIP, id="a waiting pod shrank"),
        pytest.param(make_pod("a", cpu="2"), make_pod("a", cpu="1"), QUEUE, id="the pod itself shrank"),
        pytest.param("?", None, QUEUE, id="an object that is no pod"),
    ],
)
def test_pods_that_leave_or_shrink(old, new, hint):
    assert plugin.pod_gone_or_smaller(make_pod("a", cpu="1"), old, new) is hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, make_node(cpu="1"), QUEUE, id="new and large enough"),
        pytest.param(None, make_node(cpu="500m"), SKIP, id="new and too small"),
        pytest.param(make_node(cpu="2"), make_node(cpu="3"), QUEUE, id="grew in what is asked for"),
        pytest.param(make_node(memory="1Gi"), make_node(memory="2Gi"), SKIP, id="grew in something else"),
        pytest.param(make_node(pods=1), make_node(pods=2), QUEUE, id="takes more pods"),
        pytest.param(make_node(cpu="100m"), make_node(cpu="200m"), SKIP, id="grew and is still too small"),
        pytest.param(make_node(cpu="3"), make_node(cpu="2"), SKIP, id="shrank"),
        pytest.param(None, "?", QUEUE, id="an object that is no node"),
    ],
)
def test_nodes_that_come_or_change(old, new, hint):
    assert plugin.node_has_capacity(make_pod("a", cpu="1"), old, new) is hint


def device_class(name: str, resource: str | None = None) -> Unstructured:
    return Unstructured({"metadata": {"name": name}, "spec": {"extendedResourceName": resource}})


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, device_class("gpu", GPU), QUEUE, id="a class for the resource"),
        pytest.param(None, device_class("own"), QUEUE, id="a class asked for by its own name"),
        pytest.param(None, device_class("other", "example.com/x"), SKIP, id="another class"),
        pytest.param(device_class("gpu", GPU), device_class("gpu", GPU), SKIP, id="nothing new"),
        pytest.param(device_class("gpu"), device_class("gpu", GPU), QUEUE, id="now for the resource"),
        pytest.param(None, None, QUEUE, id="an object that is no class"),
    ],
)
def test_device_classes(old, new, hint):
    pod = make_pod("a", requests={GPU: 1, "deviceclass.resource.kubernetes.io/own": 1})
    assert plugin.device_class_serves(pod, old, new) is hint


def test_a_dry_run_is_judged_by_its_own_world():
    victim = make_pod("b", node="n", cpu="3")
    asked = ask(FIT, make_pod("a", cpu="2"), [make_node("n", cpu="4")], [victim])
    overlay = asked.overlay("n")
    assert asked.plugin.filter(asked.state, asked.pod, overlay.view(0)).code is U
    overlay.remove_pod(0, PodEntry(victim))
    assert asked.plugin.filter(asked.state, asked.pod, overlay.view(0)) is None
    assert asked.plugin.filter_nodes(asked.state, asked.pod, overlay.nodes()) is None
    assert asked.plugin.score(asked.state, asked.pod, overlay.view(0)) == 74
    assert asked.refused() == {"n": (U, ("Insufficient cpu",))}


def test_pods_that_ask_for_the_same_have_one_signature():
    plugin = ask(FIT, make_pod("a"), [make_node("n")]).plugin
    assert plugin.sign(make_pod("x", cpu="1")) == plugin.sign(make_pod("y", cpu="1000m"))
    assert plugin.sign(make_pod("x", cpu="1")) != plugin.sign(make_pod("y", cpu="1", memory="1"))


@pytest.mark.parametrize("plugin", [FIT, "NodeResourcesBalancedAllocation"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_all_nodes_follow_pods_that_come_and_go(plugin, seed):
    draw = random.Random(seed)
    names = [f"n{i}" for i in range(30)]
    nodes = [make_node(name, cpu=str(draw.randrange(1, 9)), memory="8Gi") for name in names]
    asked = ask(plugin, make_pod("new", cpu="500m", memory="700Mi"), nodes)
    running: list[Pod] = []
    for step in range(25):
        for number in range(draw.choice((0, 1, 2, 40))):
            if running and draw.random() < 0.4:
                asked.world.put(PODS, None, running.pop(draw.randrange(len(running))))
            else:
                cpu = f"{draw.randrange(3000)}m" if draw.random() < 0.8 else None
                running.append(make_pod(f"p{step}-{number}", node=draw.choice(names), cpu=cpu))
                asked.world.put(PODS, running[-1], None)
        asked.world.engine.drain()
        assert asked.scores(), "all forms say the same"
