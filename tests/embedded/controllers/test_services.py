"""Disruption budgets and endpoints: both follow the pods that they select."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World, template, workload

Raw = dict[str, Any]


def budget(selector: Raw | None = None, **spec: Any) -> Raw:
    wanted = {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector, **spec}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": wanted}


def numbers(world: World) -> tuple[int, int, int, int]:
    found = world.get(kinds.BUDGETS, "web")["status"]
    return (found["expectedPods"], found["currentHealthy"], found["desiredHealthy"], found["disruptionsAllowed"])


BUDGETS = [
    ({"minAvailable": 2}, (5, 5, 2, 3)),
    ({"minAvailable": "50%"}, (5, 5, 3, 2)),
    ({"maxUnavailable": 1}, (5, 5, 4, 1)),
    ({"maxUnavailable": "30%"}, (5, 5, 3, 2)),
    ({"maxUnavailable": 0}, (5, 5, 5, 0)),
    ({"minAvailable": 9}, (5, 5, 9, 0)),
]


@pytest.mark.parametrize(("spec", "expected"), BUDGETS, ids=[str(b[0]) for b in BUDGETS])
def test_budgets(spec: Raw, expected: tuple[int, int, int, int]):
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=5))
        world.create(kinds.BUDGETS, budget(**spec))
        world.settle(6)
        assert numbers(world) == expected
        found = world.get(kinds.BUDGETS, "web")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        (condition,) = found["status"]["conditions"]
        assert condition["status"] == ("True" if expected[3] else "False")


def test_a_budget_follows_its_pods_and_the_scale_of_their_owner():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=4))
        world.create(kinds.BUDGETS, budget(maxUnavailable="50%"))
        world.settle(6)
        assert numbers(world) == (4, 4, 2, 2)
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": 8}})
        world.settle(6)
        assert numbers(world) == (8, 8, 4, 4)


def test_a_percentage_of_bare_pods_is_refused():
    made = template()
    with World() as world:
        world.create(kinds.PODS, {"metadata": {"name": "p", "namespace": "default", **made["metadata"]}, **_spec(made)})
        world.create(kinds.BUDGETS, budget(minAvailable="50%"))
        world.settle(5)
        assert numbers(world)[3] == 0
        (event,) = world.events("CalculateExpectedPodCountFailed")
        assert '"p"' in event["note"]


def _spec(made: Raw) -> Raw:
    return {"spec": made["spec"]}


def test_an_eviction_that_was_granted_counts_until_it_is_seen_or_forgotten():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=3))
        world.create(kinds.BUDGETS, budget(minAvailable=1))
        world.settle(6)
        name = world.all(kinds.PODS)[0]["metadata"]["name"]
        noted = {"status": {"disruptedPods": {name: "2026-01-01T00:00:07Z"}}}
        world.patch(kinds.BUDGETS, "web", noted, subresource="status")
        world.settle(5)
        assert numbers(world) == (3, 2, 1, 1)
        world.settle(130)
        assert numbers(world) == (3, 3, 1, 2)


def test_endpoints_follow_ready_pods():
    made = template({"app": "web"})
    made["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 8080}]
    service = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }
    with World() as world:
        world.create(kinds.SERVICES, service)
        world.create(kinds.DEPLOYMENTS, workload(replicas=3, template=made))
        world.settle(6)
        (subset,) = world.get(kinds.ENDPOINTS, "web")["subsets"]
        assert len(subset["addresses"]) == 3
        assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        (part,) = world.all(kinds.ENDPOINT_SLICES)
        assert part["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
        ips = {p["status"]["podIP"] for p in world.all(kinds.PODS)}
        assert {e["addresses"][0] for e in part["endpoints"]} == ips
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
        world.settle(6)
        assert world.get(kinds.ENDPOINTS, "web")["subsets"] == []
        since = world.clock.now()
        world.settle(60)
        assert world.writes(since) == []
        world.delete(kinds.SERVICES, "web")
        world.settle(5)
        assert world.all(kinds.ENDPOINT_SLICES) == []


def test_many_endpoints_make_several_slices():
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    with World() as world:
        world.create(kinds.SERVICES, service)
        world.create(kinds.DEPLOYMENTS, workload(replicas=150))
        world.settle(20)
        assert sorted(len(s["endpoints"]) for s in world.all(kinds.ENDPOINT_SLICES)) == [50, 100]
