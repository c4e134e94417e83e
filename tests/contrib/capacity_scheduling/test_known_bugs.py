"""What is known to go wrong with quotas elsewhere, by the number of the report: sp is scheduler-plugins, vc
volcano, koord koordinator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.app import checks
from moorage.app.configuration import configure
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.testing import Cluster, make_node, make_pod, make_pods
from moorage.testing.builders import make_container
from tests.contrib.capacity_scheduling.tenants import CONFIG, end_terminating, quota, tenants, used

PLENTY = {"cpu": "9", "memory": "9Gi", "nvidia.com/gpu": 9, "ephemeral-storage": "9Gi"}


@pytest.mark.parametrize("most", [None, {}, {"cpu": "4"}], ids=["no max", "empty max", "a max of cpu"])
def test_sp424_a_resource_that_max_does_not_name_is_unlimited(most):
    with tenants(quota("a", PLENTY, most)) as cluster:
        asked = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
        cluster.add(make_pod("x", namespace="a", requests=asked))
        cluster.settle()
        assert cluster.node_of("x", "a")


def test_vc1485_an_extended_resource_that_max_does_not_name_is_unlimited():
    with tenants(quota("a", PLENTY, 4), make_node("n0", extended={"nvidia.com/gpu": 2})) as cluster:
        cluster.add(make_pod("x", namespace="a", requests={"cpu": "1", "nvidia.com/gpu": 2}))
        cluster.settle()
        assert cluster.node_of("x", "a")


def test_sp424_a_resource_that_min_does_not_name_is_not_guaranteed():
    with tenants(quota("a", 4), make_node("n0", extended={"nvidia.com/gpu": 2})) as cluster:
        cluster.add(make_pod("x", namespace="a", requests={"cpu": "1", "nvidia.com/gpu": 1}))
        cluster.settle()
        assert "total ElasticQuota used is more than min" in cluster.record("x", "a").message


def test_sp683_sp211_a_namespace_within_its_min_gets_back_what_others_have_borrowed():
    with tenants(quota("a", 2), quota("b", 2), make_node("n0"), make_node("n1")) as cluster:
        cluster.add(make_pods(4, "a", namespace="a", cpu="1", priority=1000))
        cluster.settle()
        for name in ("b-0", "b-1"):
            cluster.add(make_pod(name, namespace="b", cpu="1"))
            cluster.settle()
            assert len(end_terminating(cluster)) == 1
            cluster.settle(20)
        assert sorted(pod.partition("/")[0] for pod in cluster.bound()) == ["a", "a", "b", "b"]


def test_sp380_pods_that_are_nominated_in_other_namespaces_do_not_count_for_the_own_max():
    nodes = make_node("n0", labels={"disk": "fast"}), make_node("n1")
    with tenants(quota("a", 9, 4), quota("b", 4), *nodes) as cluster:
        here: dict[str, Any] = {"node_selector": {"disk": "fast"}, "namespace": "b", "cpu": "4"}
        cluster.add(make_pod("old", **here))
        cluster.settle()
        cluster.add(make_pod("waiting", priority=9, **here))
        cluster.settle()
        assert cluster.record("waiting", "b").victims == ("b/old",)
        cluster.add(make_pod("x", namespace="a", cpu="3"))
        cluster.settle()
        assert cluster.node_of("x", "a") == "n1"


def test_sp73_a_pod_goes_even_if_its_namespace_falls_below_its_min_by_it():
    with tenants(quota("a", 2), quota("b", 2)) as cluster:
        cluster.add(make_pod("large", namespace="a", cpu="3", priority=1000))
        cluster.settle()
        cluster.add(make_pod("b", namespace="b", cpu="2"))
        cluster.settle()
        assert cluster.record("b", "b").victims == ("a/large",)


def test_sp73_of_two_borrowers_that_do_it_the_less_important_one_goes():
    with tenants(quota("a", 2), quota("b", 2)) as cluster:
        cluster.add(make_pod("large", namespace="a", cpu="3", priority=1000))
        cluster.add(make_pod("small", namespace="a", cpu="1", priority=10))
        cluster.settle()
        cluster.add(make_pod("b", namespace="b", cpu="1"))
        cluster.settle()
        assert cluster.record("b", "b").victims == ("a/small",)


@pytest.mark.parametrize("other", ["DefaultPreemption", "PreemptionToleration"])
def test_sp847_two_plugins_that_preempt_are_reported(other):
    alone = json.loads(CONFIG)
    assert checks.find_warnings(configure(json.dumps(alone), discover=False)) == []
    plugins = alone["profiles"][0]["plugins"]["multiPoint"]
    plugins["disabled"] = [name for name in plugins["disabled"] if name["name"] != other]
    plugins["enabled"] += [{"name": other}] if other != "DefaultPreemption" else []
    found = checks.find_warnings(configure(json.dumps(alone), discover=False))
    assert f'profiles[0].plugins: "CapacityScheduling" replaces "{other}"; disable {other}' in found


def test_sp848_the_status_needs_no_other_program_and_a_kind_that_is_not_served_is_reported():
    with tenants(quota("a", 2)) as cluster:
        assert used(cluster, "a") == {"cpu": "0"}
        cluster.scheduler.engine.stores[ELASTICQUOTAS].known = False
        plugin = next(iter(cluster.scheduler.engine.profiles.values())).plugins["CapacityScheduling"]
        with pytest.raises(MoorageError, match="does not serve elasticquotas"):
            cluster.run(plugin.run())


def test_koord762_a_standby_writes_no_status():
    with Cluster(config=CONFIG, start=False) as cluster:
        cluster.add(quota("a", 2), make_node("n0"))
        cluster.run(cluster.scheduler.follow())
        cluster.settle(10)
        assert used(cluster, "a") is None
        cluster.run(cluster.scheduler.lead())
        cluster.settle()
        assert used(cluster, "a") == {"cpu": "0"}


def test_one_account_counts_overhead_and_sidecars_for_scheduling_and_status():
    sidecar = make_container("side", cpu="500m", sidecar=True)
    pod = make_pod("x", namespace="a", cpu="1", init_containers=(sidecar,), overhead={"cpu": "250m"})
    with tenants(quota("a", 3, 3)) as cluster:
        cluster.add(pod, make_pod("y", namespace="a", cpu="1250m"))
        cluster.settle()
        assert used(cluster, "a") == {"cpu": "3"}
        cluster.add(make_pod("z", namespace="a", cpu="1m"))
        cluster.settle()
        assert not cluster.node_of("z", "a")
