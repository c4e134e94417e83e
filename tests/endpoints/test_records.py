"""What /moorage/v1/records answers: where a pod waits and until when, its attempts in pages, node names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from moorage.endpoints.v1 import records
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.endpoints.asking import Asker


def asked(cluster: Cluster, pod: str, **query: str) -> dict[str, Any]:
    found: dict[str, Any] = Asker(cluster).get("records?" + urlencode({"pod": f"default/{pod}", **query}))
    return found


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(flush_after=300.0) as cluster:
        cluster.add(*make_nodes(3, cpu="1"), make_node("cordoned", unschedulable=True))
        cluster.add(make_pod("big", cpu="2"))
        cluster.settle()
        yield cluster


def test_an_unschedulable_pod_has_its_place_its_plugins_and_the_time_of_the_flush(cluster: Cluster) -> None:
    waiting = asked(cluster, "big")["waiting"]
    assert (waiting["place"], waiting["plugins"]) == ("unschedulable", ["NodeResourcesFit", "NodeUnschedulable"])
    assert waiting["why"].startswith("Refused by NodeResourcesFit, NodeUnschedulable; waits for an event")
    assert waiting["until"] == pytest.approx(waiting["since"] + 300)
    assert abs(waiting["since"] - cluster.clock.wall()) < 2, "epoch seconds, as `started` of the records"


def test_an_unschedulable_pod_has_the_message_of_its_last_attempt_with_its_figures(cluster: Cluster) -> None:
    message = asked(cluster, "big")["waiting"]["message"]
    assert message.startswith("0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu.")


def test_a_gated_pod_without_any_attempt_is_found_too(cluster: Cluster) -> None:
    cluster.add(make_pod("gated", gates=["quota"]))
    cluster.settle()
    answer = asked(cluster, "gated")
    assert (answer["waiting"]["place"], answer["records"]) == ("gated", [])


def test_a_pod_that_is_bound_or_unknown_waits_nowhere(cluster: Cluster) -> None:
    cluster.add(make_pod("small"))
    cluster.settle()
    answer = asked(cluster, "small")
    assert (answer["waiting"], answer["exists"], answer["node"]) == (None, True, answer["records"][0]["node"])
    assert [record["result"] for record in answer["records"]] == ["scheduled"]
    assert asked(cluster, "unknown") == {
        "pod": "default/unknown", "exists": False, "node": "", "waiting": None, "records": [], "before": None,
    }  # fmt: skip


def test_refused_nodes_are_named_up_to_the_bound(cluster: Cluster) -> None:
    def refused(**query: str) -> dict[str, tuple[int, list[str]]]:
        [record] = asked(cluster, "big", **query)["records"]
        return {r["plugin"]: (r["nodes"], r["nodeNames"]) for r in record["refusals"]}

    assert refused()["NodeUnschedulable"] == (1, ["cordoned"])
    count, names = refused()["NodeResourcesFit"]
    assert (count, len(names)) == (3, 3)
    assert refused(nodes="2")["NodeResourcesFit"] == (3, names[:2])


def test_pages_go_from_the_newest_records_to_the_oldest_and_meet_each_record_once(cluster: Cluster) -> None:
    for number in range(6):
        cluster.add(make_node(f"late{number}", cpu="1"))
        cluster.settle(20)
    attempts: list[Any] = []
    query = {"limit": "3"}
    while True:
        answer = asked(cluster, "big", **query)
        page = [record["attempt"] for record in answer["records"]]
        assert 0 < len(page) <= 3
        attempts = page + attempts
        if answer["before"] is None:
            break
        query["before"] = str(answer["before"])
    assert attempts == [record.attempt for record in cluster.scheduler.records.of("default/big")]
    assert len(attempts) == 7


def test_asking_again_shows_new_attempts_and_no_longer_those_that_the_ring_has_dropped(cluster: Cluster) -> None:
    asker = Asker(cluster)

    def attempts() -> list[int]:
        return [record["attempt"] for record in asker.get("records?pod=default/big")["records"]]

    assert attempts() == [1]
    cluster.add(make_node("late", cpu="1"))
    cluster.settle(20)
    assert attempts() == [1, 2]
    cluster.scheduler.records.max_bytes = 1
    cluster.add(make_node("later", cpu="1"))
    cluster.settle(20)
    assert attempts() == [3]
    for number in range(records.MAX_KNOWN_PODS + 1):
        asker.get(f"records?pod=default/other-{number}")
    assert attempts() == [3]
