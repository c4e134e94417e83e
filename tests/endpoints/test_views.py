"""What /moorage/v1 says of a running scheduler: the queue, attempts, nodes, and the summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from moorage.api.resources import PODS
from moorage.endpoints.answers import reason_of
from moorage.endpoints.loop_bridge import CACHE_FACTOR, Cached
from moorage.framework import PermitPlugin, Status
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.endpoints.asking import Asker, DirectBridge


class Doorman(PermitPlugin):
    name = "Doorman"

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=60.0) if pod.labels.get("wait") else None


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {permit: {enabled: [{name: Doorman}]}}
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG, plugins=[Doorman]) as cluster:
        cluster.add(*make_nodes(3, cpu="2"), make_node("cordoned", unschedulable=True, labels={"zone": "z9"}))
        cluster.settle()
        cluster.add(make_pod("big-0", cpu="4"), make_pod("big-1", cpu="4", priority=7))
        cluster.add(make_pod("elsewhere", node_selector={"disk": "ssd"}))
        cluster.add(make_pod("gated", gates=["quota"]), make_pod("held", labels={"wait": "yes"}))
        cluster.add(make_pod("small", cpu="1"))
        cluster.settle()
        yield cluster


@pytest.fixture
def ask(cluster: Cluster) -> Asker:
    return Asker(cluster)


FIT = "NodeResourcesFit,NodeUnschedulable"
HELD_BY = "NodeResourcesFit"
"""Without the plugin that rejects the cordoned node for every pod."""


def names(answer: Any) -> list[str]:
    return [pod["pod"].removeprefix("default/") for pod in answer["pods"]]


def test_the_queue_is_counted_by_place_and_grouped_by_who_holds_the_pods(ask: Asker) -> None:
    answer = ask.get("queue")
    assert answer["places"] == {
        "active": 0, "backoff": 0, "unschedulable": 3, "gated": 1, "permit": 1, "inflight": 0,
    }  # fmt: skip
    groups = {(group["place"], group["reason"]): group["pods"] for group in answer["groups"]}
    assert groups == {
        ("unschedulable", HELD_BY): 2,
        ("unschedulable", "NodeAffinity"): 1,
        ("gated", "SchedulingGates"): 1,
        ("permit", "Doorman"): 1,
    }
    assert names(answer) == ["big-0", "big-1", "elsewhere", "gated", "held"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("place=unschedulable", ["big-0", "big-1", "elsewhere"]),
        ("place=permit", ["held"]),
        (f"reason={HELD_BY}", ["big-0", "big-1"]),
        ("search=default/big", ["big-0", "big-1"]),
        ("search=big&after=default/big-0", ["big-1"]),
        ("place=active", []),
        ("after=zzz", []),
    ],
)
def test_the_queue_is_searched_by_place_reason_and_name(ask: Asker, query: str, expected: list[str]) -> None:
    assert names(ask.get(f"queue?{query}")) == expected


def test_an_unschedulable_pod_says_what_would_wake_it(ask: Asker) -> None:
    [pod] = ask.get("queue?search=big-1")["pods"]
    assert (pod["place"], pod["plugins"], pod["priority"], pod["attempts"]) == ("unschedulable", FIT.split(","), 7, 1)
    wakes = {each["plugin"]: each["events"] for each in pod["wakes"]}
    assert wakes["NodeUnschedulable"] == ["NodeAdd", "NodeUpdateNodeTaint", "PodUpdatePodToleration"]
    assert {"NodeAdd", "NodeUpdateNodeAllocatable", "PodDelete"} <= set(wakes["NodeResourcesFit"])


def test_a_pod_that_waits_in_permit_says_for_whom_where_and_until_when(ask: Asker) -> None:
    [pod] = ask.get("queue?place=permit")["pods"]
    assert pod["why"] == f"Waiting in Permit for Doorman, to be bound to {ask.cluster.record('held').node}."
    assert pod["until"] == pytest.approx(pod["since"] + 60)
    assert pod["wakes"] == []


def test_pages_of_the_queue_meet_each_pod_once(ask: Asker) -> None:
    seen, after = [], ""
    while True:
        answer = ask.get(f"queue?limit=2&after={after}" if after else "queue?limit=2")
        seen += names(answer)
        after = answer["after"]
        if after is None:
            break
    assert seen == ["big-0", "big-1", "elsewhere", "gated", "held"]


def test_a_pod_that_moved_since_it_was_listed_is_not_shown_where_it_was(ask: Asker) -> None:
    ask.get("queue")
    ask.views.queue.__self__._listing._until = float("inf")  # type: ignore[attr-defined]  # a large listing
    ask.cluster.add(make_node("large", cpu="8"))
    ask.cluster.settle(20)
    assert names(ask.get("queue?place=unschedulable")) == ["elsewhere"]


def test_what_took_long_is_kept_two_hundred_times_as_long() -> None:
    now, made = [0.0], []

    def work(looked: int) -> int:
        now[0] += 0.02
        made.append(looked)
        return looked

    kept = Cached(DirectBridge(), lambda: now[0], lambda: len(made), work)
    with Cluster(start=False) as cluster:
        assert cluster.run(kept.get()) == 0
        now[0] += 0.02 * CACHE_FACTOR - 0.01
        assert cluster.run(kept.get()) == 0
        now[0] += 0.02
        assert cluster.run(kept.get()) == 1


def test_attempts_of_all_pods_come_newest_first_and_in_pages(ask: Asker) -> None:
    seen, before = [], ""
    while True:
        answer = ask.get(f"attempts?limit=2&before={before}" if before else "attempts?limit=2")
        seen += [attempt["sequence"] for attempt in answer["attempts"]]
        before = answer["before"]
        if before is None:
            break
    assert seen == [record.sequence for record in reversed(ask.cluster.scheduler.records)]
    assert {one["pod"] for one in ask.get("attempts?result=scheduled")["attempts"]} == {
        "default/held", "default/small",
    }  # fmt: skip


def test_one_attempt_names_every_refused_node_with_plugin_and_reasons(ask: Asker) -> None:
    sequence = ask.cluster.record("big-0").sequence
    answer = ask.get(f"attempts/{sequence}")
    assert answer["pod"] == "default/big-0"
    refused = {each["node"]: (each["plugin"], each["reasons"]) for each in answer["refusedNodes"]}
    assert refused == {
        **{f"node-{i}": ("NodeResourcesFit", ["Insufficient cpu"]) for i in range(3)},
        "cordoned": ("NodeUnschedulable", ["node(s) were unschedulable"]),
    }
    assert {each["plugin"]: each["nodes"] for each in answer["refusals"]} == {
        "NodeResourcesFit": 3, "NodeUnschedulable": 1,
    }  # fmt: skip
    only = ask.get(f"attempts/{sequence}?plugin=NodeUnschedulable")["refusedNodes"]
    assert [each["node"] for each in only] == ["cordoned"]


def test_pages_of_refused_nodes_meet_each_node_once(ask: Asker) -> None:
    path = f"attempts/{ask.cluster.record('big-0').sequence}"
    whole = [each["node"] for each in ask.get(path)["refusedNodes"]]
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = ask.get(f"{path}?limit=3&after={after}" if after else f"{path}?limit=3")
        seen += [each["node"] for each in page["refusedNodes"]]
        after = page["after"]
    assert seen == whole
    assert len(whole) == 4


def test_a_scheduled_attempt_has_all_kept_scores(ask: Asker) -> None:
    record = ask.cluster.record("small")
    answer = ask.get(f"attempts/{record.sequence}")
    assert [each["node"] for each in answer["scores"]] == [each.node for each in record.scores]
    assert len(answer["scores"]) == 3
    assert answer["node"] == record.node


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("attempts/9999", "attempt 9999 is no longer kept"),
        ("attempts/1?after=nowhere", "attempt 1 did not see such a node"),
        ("nodes/nowhere", "there is no node 'nowhere'"),
    ],
)
def test_what_is_not_there_is_a_sentence(ask: Asker, path: str, problem: str) -> None:
    assert problem in ask.get(path)


def test_nodes_have_what_is_requested_there_assumed_pods_included(ask: Asker) -> None:
    answer = ask.get("nodes")
    assert [node["name"] for node in answer["nodes"]] == ["cordoned", "node-0", "node-1", "node-2"]
    by_name = {node["name"]: node for node in answer["nodes"]}
    used = by_name[ask.cluster.record("small").node]
    assert (used["allocatable"]["cpu"], used["requested"]["cpu"]) == (2000, 1000)
    assert sum(node["podCount"] for node in answer["nodes"]) == 2, "small, and held, which is assumed"
    assert by_name["cordoned"]["unschedulable"] is True


@pytest.mark.parametrize(
    ("query", "expected", "after"),
    [
        ("search=node-", ["node-0", "node-1", "node-2"], None),
        ("search=zone=z9", ["cordoned"], None),
        ("limit=2", ["cordoned", "node-0"], "node-0"),
        ("limit=2&after=node-0", ["node-1", "node-2"], None),
        ("search=nothing", [], None),
    ],
)
def test_nodes_are_searched_by_name_and_label_and_paged(
    ask: Asker, query: str, expected: list[str], after: str | None
) -> None:
    answer = ask.get(f"nodes?{query}")
    assert ([node["name"] for node in answer["nodes"]], answer["after"]) == (expected, after)


def test_a_node_has_its_pods(ask: Asker) -> None:
    [held] = [
        pod
        for node in ("node-0", "node-1", "node-2")
        for pod in ask.get(f"nodes/{node}")["pods"]
        if pod["pod"] == "default/held"
    ]
    assert held["assumed"] is True
    small = ask.get(f"nodes/{ask.cluster.record('small').node}?limit=1&after=default/held")["pods"]
    assert [(pod["pod"], pod["assumed"], pod["requests"]) for pod in small] == [("default/small", False, {"cpu": 1000})]


def test_a_node_has_its_conditions_and_age_and_its_pods_have_phase_age_and_owner() -> None:
    since = "2026-01-02T03:04:05Z"
    leaving = make_node("leaving", cpu="2")
    meta = structs.replace(leaving.metadata, deletion_timestamp=since, finalizers=("example.com/drain",))
    leaving = structs.replace(leaving, metadata=meta)
    with Cluster() as cluster:
        cluster.add(leaving, make_pod("web", cpu="1", owner="ReplicaSet/web", node_name="leaving", phase="Running"))
        cluster.settle()
        node = Asker(cluster).get("nodes/leaving")
        assert node["deletingSince"] == pytest.approx(1767323045.0)
        assert [(each["type"], each["status"]) for each in node["conditions"]] == [("Ready", "True")]
        assert node["created"] is not None
        [pod] = node["pods"]
        assert (pod["phase"], pod["owner"], pod["created"] is None) == ("Running", "ReplicaSet/web", False)


def test_an_answer_says_whether_the_scheduler_still_follows_the_api_server(ask: Asker) -> None:
    assert ask.get("queue")["connected"] is True
    assert ask.get("summary")["connected"] is True
    ask.cluster.scheduler.informers.informers[PODS].synced.clear()
    assert ask.get("queue")["connected"] is False
    assert ask.get("summary")["connected"] is False


def test_pods_are_grouped_without_what_closed_nodes_say_about_every_pod() -> None:
    assert reason_of({"TaintToleration", "NodeResourcesFit", "NodeUnschedulable"}) == "NodeResourcesFit"
    assert reason_of({"TaintToleration", "NodeUnschedulable"}) == "NodeUnschedulable,TaintToleration"
    assert reason_of(()) == ""


def test_the_summary_counts_pods_and_the_attempts_of_the_last_minutes(ask: Asker) -> None:
    ask.cluster.settle(25)
    answer = ask.get("summary")
    assert answer["pods"] == {
        "active": 0, "backoff": 0, "unschedulable": 3, "gated": 1, "permit": 1, "inflight": 0,
        "assumed": 1, "bound": 1,
    }  # fmt: skip
    assert (answer["nodes"], answer["profiles"], answer["leads"]) == (4, ["default-scheduler"], True)
    assert answer["configurationGeneration"] == 1
    steps = answer["steps"]
    assert len(steps) == 3, "the attempts were half a minute ago"
    assert (steps[0]["scheduled"], steps[0]["unschedulable"], steps[-1]["scheduled"]) == (2, 3, 0)
    assert steps[-1]["from"] + steps[-1]["seconds"] == pytest.approx(ask.cluster.clock.wall())
    assert steps[-1]["p99Seconds"] is None
    ask.cluster.settle(600)
    assert sum(step["scheduled"] for step in ask.get("summary")["steps"]) == 0


def test_questions_change_nothing(ask: Asker) -> None:
    before = ask.get("summary")
    for path in ("queue", "attempts", "attempts/1", "nodes", "nodes/node-0", "records?pod=default/big-0"):
        ask.get(path)
    assert ask.get("summary") == before
    ask.cluster.validate()
