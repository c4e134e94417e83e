"""Pods that are scheduled through an extender: in virtual time over a transport in the process, once on real
sockets."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.errors import NotSent, OutcomeUnknown
from moorage.api.resources import NODES, PODS
from moorage.app.clock import SystemClock
from moorage.app.scheduler import Scheduler
from moorage.config import ExtenderManagedResource
from moorage.extender.client import HttpExtender
from moorage.runtime.record import ExtenderVerdict
from moorage.runtime.top_scores import KeptTop
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import make_node, make_pod
from tests.client.raw_server import serve
from tests.extender.kit import extender_of, replying
from tests.scheduler.kit import ExtendedCluster, assumed, config, notes, place

THREE = tuple(make_node(name) for name in "abc")
DOWN = OutcomeUnknown("POST /filter: the answer broke off")


def cluster_of(*extenders: HttpExtender, **options: Any) -> ExtendedCluster:
    return ExtendedCluster(*extenders, **{"config": config(), "flush_after": None, **options})


def keep(*names: str) -> dict[str, Any]:
    return {"NodeNames": list(names), "FailedNodes": {}}


def test_what_an_extender_removed_and_scored_is_on_record():
    def answer(verb: str, question: Any) -> Any:
        if verb == "filter":
            return {"NodeNames": ["b", "c"], "FailedNodes": {"a": "too hot"}}
        return [{"Host": "c", "Score": 7}, {"Host": "a", "Score": 9}, {"Host": "unknown", "Score": 1}]

    given = extender_of(answer, "filter", "prioritize", weight=2, node_cache_capable=True)
    with cluster_of(given) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "c"
        record = cluster.record("p")
    assert record.extenders == (ExtenderVerdict("http://extender", 1),)
    assert [(r.plugin, r.reasons, r.nodes) for r in record.refusals] == [("Extender", ("too hot",), 1)]
    found = {entry.node: (entry.total, entry.plugins[-1]) for entry in record.scores}
    assert {node: (total, score.raw, score.weighted) for node, (total, score) in found.items()} == {
        "c": (141, 7, 140), "b": (1, 0, 0),
    }  # fmt: skip
    assert found["c"][1].plugin == "http://extender"
    shown = record.to_dict()["extenders"]
    assert shown == [{"extender": "http://extender", "removedNodes": 1, "error": ""}]


def test_what_extenders_say_is_asked_anew_for_every_pod_of_a_template():
    """A baseline must not hold what an extender said of an earlier pod."""
    names = iter("abc" * 4)
    scored = extender_of(lambda verb, question: [{"Host": next(names), "Score": 10}], "prioritize")
    with cluster_of(scored, config=None) as cluster:
        cluster.add(*THREE)
        for index in range(9):
            cluster.add(make_pod(f"p{index}", cpu="10m"))
            cluster.settle(1)
        assert [cluster.node_of(f"p{index}") for index in range(9)] == list("abc" * 3)


def test_pods_that_no_extender_is_interested_in_are_decided_by_their_template():
    gpu = ExtenderManagedResource(name="example.com/gpu")
    given = extender_of(lambda verb, question: DOWN, "filter", "prioritize", managed_resources=(gpu,))
    with cluster_of(given, config=None) as cluster:
        cluster.add(*THREE)
        for index in range(9):
            cluster.add(make_pod(f"p{index}", cpu="10m"))
            cluster.settle(1)
        assert cluster.pending() == []
        assert isinstance(cluster.record("p8").top, KeptTop), "a plugin was asked"


def test_f1_an_error_has_the_url_in_its_reason_and_the_pod_comes_back():
    answers: list[Any] = [DOWN, (503, {}), keep("b")]
    given = extender_of(lambda verb, question: answers.pop(0), "filter", node_cache_capable=True)
    with cluster_of(given) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.3)
        prefix = "failed filter with extender at URL http://extender/filter: "
        assert notes(cluster, "p") == [f"{prefix}{DOWN}"]
        assert place(cluster, "p") == "backoff"
        cluster.settle(10)
        assert cluster.node_of("p") == "b"
        errors = [r.extenders[0].error for r in cluster.scheduler.records.of("default/p")]
        assert errors == [f"{prefix}{DOWN}", f"{prefix}code 503", ""]


def test_an_ignorable_extender_that_fails_is_skipped_and_the_record_says_so():
    given = extender_of(lambda verb, question: DOWN, "filter", "prioritize", ignorable=True)
    with cluster_of(given) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"
        (verdict,) = cluster.record("p").extenders
        assert verdict.removed_nodes == 0
        assert "broke off" in verdict.error


def test_f5_scores_above_ten_count_for_nothing():
    given = extender_of(lambda verb, question: [{"Host": "c", "Score": 11}], "prioritize")
    with cluster_of(given) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert {entry.total for entry in cluster.record("p").scores} == {1}


def test_prioritize_asks_all_extenders_at_once():
    class Meeting(HttpExtender):
        async def prioritize(self, pod: Any, nodes: Any) -> Any:
            async with asyncio.timeout(1):
                await barrier.wait()
            return await super().prioritize(pod, nodes)

    barrier = asyncio.Barrier(2)
    scores = [{"Host": "b", "Score": 5}]
    pair = [extender_of(lambda verb, question: scores, "prioritize", made=Meeting) for _ in range(2)]
    with cluster_of(*pair) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle()
        assert sorted(entry.total for entry in cluster.record("p").scores) == [1, 1, 101]


@pytest.mark.parametrize("answer", [(500, {}), {"Error": "too late"}, OutcomeUnknown("no answer")])
def test_f10_a_binder_that_bound_and_then_failed_is_found_out(answer):
    def bind(verb: str, question: Any) -> Any:
        cluster.store.bind(question["PodName"], question["PodNamespace"], question["Node"])
        return answer

    with cluster_of(extender_of(bind, "bind")) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(3)
        assert notes(cluster, "p") == ["Successfully assigned default/p to a"]
        assert (assumed(cluster), cluster.faults.calls_of("bind")) == ([], [])


def test_f10_a_binder_that_failed_without_binding_fails_the_attempt_with_its_text():
    given = extender_of(lambda verb, question: {"Error": "not today"}, "bind")
    with cluster_of(given) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(0.5)
        assert notes(cluster, "p") == ["failed bind with extender at URL http://extender/bind: not today"]
        assert (assumed(cluster), place(cluster, "p")) == ([], "backoff")


@pytest.mark.parametrize("answer", [(500, {}), OutcomeUnknown("no answer"), NotSent("refused")])
@pytest.mark.parametrize("binds", [True, False])
def test_f11_behind_an_ignorable_binder_that_fails_the_plugins_bind(binds, answer):
    def bind(verb: str, question: Any) -> Any:
        if binds:
            cluster.store.bind(question["PodName"], question["PodNamespace"], question["Node"])
        return answer

    with cluster_of(extender_of(bind, "bind", ignorable=True)) as cluster:
        cluster.add(*THREE, make_pod("p"))
        cluster.settle(3)
        assert cluster.node_of("p") == "a"
        assert notes(cluster, "p") == ["Successfully assigned default/p to a"]
        assert (assumed(cluster), len(cluster.faults.calls_of("bind"))) == ([], 1)


@pytest.mark.parametrize("names_only", [True, False])
def test_an_extender_narrows_the_candidates_of_preemption(names_only):
    asked: list[Any] = []

    def preempt(verb: str, question: Any) -> Any:
        asked.append(question)
        (uid,) = [pod.uid for pod in cluster.pods() if pod.name == "low-b"]
        return {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}}

    given = extender_of(preempt, "preempt", node_cache_capable=names_only)
    plugins = config("NodeResourcesFit", "DefaultPreemption")
    with cluster_of(given, config=plugins) as cluster:
        cluster.add(*(make_node(name, cpu="1") for name in "ab"))
        cluster.add(*(make_pod(f"low-{name}", cpu="1", node=name, priority=1) for name in "ab"))
        cluster.settle()
        cluster.add(make_pod("high", cpu="1", priority=10))
        cluster.settle(0.2)
        assert cluster.record("high").victims == ("default/low-b",)
    offered = asked[0]["NodeNameToMetaVictims" if names_only else "NodeNameToVictims"]
    assert sorted(offered) == ["a", "b"]


def test_a_scheduler_asks_the_extenders_of_its_configuration_and_closes_them():
    """On real sockets, from the YAML to the bound pod; the resource is the extender's alone."""

    def answer(verb: str, question: Any) -> Any:
        if verb == "bind":
            store.bind(question["PodName"], question["PodNamespace"], question["Node"])
            return {"Error": ""}
        if verb == "filter":
            return {"Nodes": {"items": question["Nodes"]["items"][1:]}}
        return [{"Host": "c", "Score": 10}]

    text = """
extenders:
- {urlPrefix: "%s", filterVerb: filter, prioritizeVerb: prioritize, bindVerb: bind, weight: 1,
   httpTimeout: 5s, managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}
"""
    clock = SystemClock()
    store, metrics = Store(clock.wall, random.Random(0)), SchedulerMetrics(clock.now)

    async def main() -> None:
        async with serve(replying(answer)) as server:
            text_of_it = config("NodeResourcesFit", head=text % server.url)
            client = LocalClient(store, clock)
            async with (
                Scheduler(client, config=text_of_it, discover=False, instance="t", metrics=metrics) as made,
                asyncio.timeout(10),
            ):
                while made.records.last("default/p") is None or not bound():
                    await asyncio.sleep(0.005)
            assert server.connections == 1

    def bound() -> str:
        found = store.find(PODS, "p", "default")
        return found["spec"].get("nodeName", "") if found else ""

    for node in THREE:
        store.load(NODES, decoding.to_builtins(node))
    store.load(PODS, decoding.to_builtins(make_pod("p", requests={"example.com/gpu": "1"})))
    asyncio.run(main())
    assert bound() == "c"
    counted = [s for s in metrics.extender_requests.collect().samples if s.name.endswith("_total")]
    assert sorted((s.labels["verb"], s.labels["outcome"]) for s in counted) == [
        ("bind", "success"), ("filter", "success"), ("prioritize", "success"),
    ]  # fmt: skip
