"""ElasticQuota in a running scheduler: borrowing, taking back, what wakes a pod, and the status."""

from __future__ import annotations

import json

import pytest

from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.store.faults import Fault, not_sent
from moorage.testing import make_node, make_pod, make_pods
from tests.contrib.capacity_scheduling.tenants import CONFIG, account, end_terminating, existing, quota, tenants, used


def test_a_namespace_borrows_what_another_leaves_and_the_owner_takes_it_back():
    with tenants(quota("a", 2, 4), quota("b", 2)) as cluster:
        cluster.add(make_pods(4, "a", namespace="a", cpu="1", priority=100))
        cluster.settle()
        assert len(cluster.bound()) == 4
        cluster.add(make_pod("b", namespace="b", cpu="1"))
        cluster.settle()
        assert cluster.record("b", "b").victims == ("a/a-3",)
        assert end_terminating(cluster) == ["a/a-3"]
        cluster.settle(20)
        assert cluster.node_of("b", "b") == "n0"


@pytest.mark.parametrize("burst", [True, False], ids=["at once", "one by one"])
def test_each_of_several_owners_takes_back_no_more_than_it_needs_while_victims_end(burst):
    with tenants(quota("a", 1), quota("b", 4), make_node("n0"), make_node("n1")) as cluster:
        cluster.add(make_pods(5, "a", namespace="a", cpu="1", priority=100))
        cluster.settle()
        for pod in make_pods(4, "b", namespace="b", cpu="1"):
            cluster.add(pod)
            cluster.settle(0 if burst else 1)
        cluster.settle(60)
        victims = [cluster.record(f"b-{i}", "b").victims for i in range(4)]
        ended = end_terminating(cluster)
        assert len(ended) == 4
        assert burst or sorted(v for found in victims for v in found) == ended
        cluster.settle(60)
        assert sorted(cluster.bound()) == sorted(["b/b-0", "b/b-1", "b/b-2", "b/b-3", *remaining("a", 5, ended)])


def remaining(namespace, count, gone):
    return {f"{namespace}/{namespace}-{i}" for i in range(count)} - {*gone}


def test_the_own_max_holds_on_an_empty_cluster():
    with tenants(quota("a", 2, 3), quota("b", 9)) as cluster:
        cluster.add(make_pods(4, "a", namespace="a", cpu="1"))
        cluster.settle()
        assert sorted(cluster.bound()) == ["a/a-0", "a/a-1", "a/a-2"]
        text = "Pod a/a-3 is rejected in PreFilter because ElasticQuota a is more than Max."
        assert cluster.events("a-3")[0].note.startswith(f"0/1 nodes are available: {text}")


def test_a_pod_above_its_min_preempts_in_its_own_namespace_only():
    with tenants(quota("a", 2, 4), quota("b", 2)) as cluster:
        cluster.add(make_pods(2, "b", namespace="b", cpu="1"), make_pods(2, "a", namespace="a", cpu="1"))
        cluster.settle()
        cluster.add(make_pod("urgent", namespace="a", cpu="1", priority=9))
        cluster.settle()
        assert cluster.record("urgent", "a").victims == ("a/a-1",)


def test_a_pod_without_a_quota_leaves_tenants_alone():
    with tenants(quota("a", 4)) as cluster:
        cluster.add(make_pods(3, "a", namespace="a", cpu="1"), make_pod("free", cpu="1"))
        cluster.settle()
        cluster.add(make_pod("urgent", cpu="1", priority=9), make_pod("huge", cpu="2", priority=9))
        cluster.settle()
        assert cluster.record("urgent").victims == ("default/free",)
        assert cluster.record("huge").victims == ()


def test_two_pods_of_one_moment_do_not_share_the_last_cpu_of_a_quota():
    with tenants(quota("a", 1, 1), make_node("n0"), make_node("n1")) as cluster:
        cluster.add(make_pods(2, "a", namespace="a", cpu="1"))
        cluster.settle()
        assert sorted(cluster.bound()) == ["a/a-0"]


def test_profiles_share_one_account():
    config = json.loads(CONFIG)
    config["profiles"][0]["schedulerName"] = "default-scheduler"
    config["profiles"].append({**config["profiles"][0], "schedulerName": "second"})
    with tenants(quota("a", 1, 1), config=json.dumps(config)) as cluster:
        cluster.add(make_pod("x", namespace="a", cpu="1"), make_pod("y", namespace="a", cpu="1", scheduler="second"))
        cluster.settle()
        assert len(cluster.bound()) == 1


def test_a_bind_that_fails_gives_its_share_back():
    with tenants(quota("a", 1, 1)) as cluster:
        cluster.faults.add(Fault(not_sent(), verb="bind", times=1))
        cluster.add(make_pod("x", namespace="a", cpu="1"))
        cluster.settle(30)
        assert cluster.node_of("x", "a") == "n0"
        assert used(cluster, "a") == {"cpu": "1"}


@pytest.mark.parametrize(
    ("heals", "change"),
    [
        (True, lambda cluster: cluster.delete(existing(cluster, "old", "a"))),
        (True, lambda cluster: cluster.patch(ELASTICQUOTAS, "q", {"spec": {"max": {"cpu": "4"}}}, "a")),
        (True, lambda cluster: cluster.delete(quota("a"))),
        (False, lambda cluster: cluster.patch(ELASTICQUOTAS, "q", {"metadata": {"labels": {"x": "y"}}}, "a")),
        (False, lambda cluster: cluster.delete(existing(cluster, "other", "b"))),
        (False, lambda cluster: cluster.delete(existing(cluster, "free", "default"))),
    ],
    ids=["own pod gone", "max raised", "quota gone", "quota labelled", "pod of another quota", "free pod"],
)  # fmt: skip
def test_a_pod_above_its_max_is_woken_by_what_may_help_and_by_nothing_else(heals, change):
    with tenants(quota("a", 1, 1), quota("b", 3), flush_after=None) as cluster:
        cluster.add(make_pod("old", namespace="a", cpu="1"), make_pod("other", namespace="b", cpu="1"))
        cluster.add(make_pod("free"))
        cluster.settle()
        cluster.add(make_pod("new", namespace="a", cpu="1"))
        cluster.settle(30)
        attempts = cluster.record("new", "a").attempt
        change(cluster)
        cluster.settle(30)
        assert bool(cluster.node_of("new", "a")) is heals
        assert (cluster.record("new", "a").attempt > attempts) is heals


def test_a_borrower_waits_for_pods_of_any_quota():
    with tenants(quota("a", 1), quota("b", 1), flush_after=None) as cluster:
        cluster.add(make_pod("b", namespace="b", cpu="1"))
        cluster.add(make_pod("a", namespace="a", cpu="1"))
        cluster.settle()
        cluster.add(make_pod("more", namespace="a", cpu="1"))
        cluster.settle(30)
        assert not cluster.node_of("more", "a")
        cluster.delete(existing(cluster, "b", "b"))
        cluster.settle(30)
        assert cluster.node_of("more", "a")


def test_the_status_says_what_pods_use_and_names_all_resources_of_the_quota():
    with tenants(quota("a", {"cpu": "2", "memory": "2Gi"}, {"nvidia.com/gpu": 8})) as cluster:
        assert used(cluster, "a") == {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}
        cluster.add(make_pod("x", namespace="a", cpu="1500m", memory="1Gi"))
        cluster.settle()
        assert used(cluster, "a") == {"cpu": "1500m", "nvidia.com/gpu": "0", "memory": str(2**30)}
        cluster.delete(existing(cluster, "x", "a"))
        cluster.settle()
        assert used(cluster, "a")["cpu"] == "0"


def test_a_status_that_cannot_be_written_is_written_later():
    with tenants(quota("a", 2)) as cluster:
        cluster.faults.add(Fault(not_sent(), verb="patch", resource=ELASTICQUOTAS, times=1))
        cluster.add(make_pod("x", namespace="a", cpu="1"))
        cluster.settle()
        assert used(cluster, "a") == {"cpu": "0"}
        cluster.settle(10)
        assert used(cluster, "a") == {"cpu": "1"}


def test_the_first_quota_of_a_namespace_counts_and_the_next_one_when_it_goes():
    with tenants(quota("a", 1, 1, "first"), quota("a", 2, 2, "second")) as cluster:
        cluster.add(make_pods(3, "a", namespace="a", cpu="1"))
        cluster.settle()
        assert len(cluster.bound()) == 1
        cluster.delete(quota("a", name="first"))
        cluster.settle(30)
        assert len(cluster.bound()) == 2


def test_a_quota_that_comes_late_counts_the_pods_that_are_there():
    with tenants() as cluster:
        cluster.add(make_pods(2, "a", namespace="a", cpu="1"))
        cluster.settle()
        cluster.add(quota("a", 1, 2))
        cluster.settle()
        cluster.add(make_pod("more", namespace="a", cpu="1"))
        cluster.settle()
        assert not cluster.node_of("more", "a")
        assert used(cluster, "a") == {"cpu": "2"}


def test_a_quota_that_cannot_be_read_refuses_pods_and_says_why():
    with tenants(quota("a", None, {"cpu": "two"})) as cluster:
        cluster.add(make_pod("x", namespace="a", cpu="1"))
        cluster.settle()
        text = "ElasticQuota a/q: spec.max.cpu: 'two' is not a quantity: write a number such as"
        assert text in cluster.events("x")[0].note


def test_pods_that_went_while_no_profile_had_the_plugin_are_forgotten():
    with tenants(quota("a", 2, 2)) as cluster:
        cluster.add(make_pods(2, "a", namespace="a", cpu="1"))
        cluster.settle()
        cluster.reload(None)
        cluster.delete(existing(cluster, "a-0", "a"))
        cluster.settle()
        cluster.reload(CONFIG)
        cluster.settle()
        assert account(cluster).quotas["a"].used == {"cpu": 1000}
        assert used(cluster, "a") == {"cpu": "1"}
