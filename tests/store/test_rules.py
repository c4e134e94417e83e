"""What the API server fills in on creation, as far as schedulers depend on it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Forbidden
from moorage.api.resources import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
)
from tests.store.kit import labelled, new_store, pod


def created(raw: dict[str, Any], *classes: dict[str, Any]) -> dict[str, Any]:
    store = new_store()
    for each in classes:
        store.create(PRIORITY_CLASSES, each)
    return store.create(PODS, raw).raw


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value, **more}


def test_a_plain_pod():
    raw = created(pod())
    assert raw["status"] == {"phase": "Pending"}
    assert raw["spec"] == {
        "containers": [{"name": "main"}],
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def test_what_is_given_stays():
    given: dict[str, Any] = {"schedulerName": "mine", "terminationGracePeriodSeconds": 0, "priority": 7}
    spec = created(pod(**given))["spec"]
    assert given.items() <= spec.items()


def test_a_client_cannot_set_the_status_of_a_new_pod():
    assert created(pod() | {"status": {"phase": "Running"}})["status"] == {"phase": "Pending"}


def test_a_gated_pod_says_so():
    (condition,) = created(pod(schedulingGates=[{"name": "wait"}]))["status"]["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


@pytest.mark.parametrize("place", ["containers", "initContainers"])
def test_requests_default_to_limits(place):
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    containers: dict[str, Any] = {place: [{"name": "c", "resources": resources}]}
    spec = created(pod(**containers))["spec"]
    assert spec[place][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_on_the_host_network_ports_are_ports_of_the_node():
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    spec = created(pod(hostNetwork=True, containers=[{"name": "c", "ports": ports}]))["spec"]
    assert [port["hostPort"] for port in spec["containers"][0]["ports"]] == [80, 81]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"priorityClassName": "high"}, (1000, "Never"), id="from the named class"),
        pytest.param({}, (5, "PreemptLowerPriority"), id="from the global default"),
        pytest.param({"priority": 3}, (3, "PreemptLowerPriority"), id="as given"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            (2_000_001_000, "PreemptLowerPriority"),
            id="from a class of the system",
        ),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            (1000, "PreemptLowerPriority"),
            id="with a policy of its own",
        ),
    ],
)
def test_priority(spec, expected):
    classes = (priority_class("high", 1000, preemptionPolicy="Never"), priority_class("usual", 5, globalDefault=True))
    found = created(pod(**spec), *classes)["spec"]
    assert (found["priority"], found["preemptionPolicy"]) == expected


def test_an_unknown_priority_class_is_forbidden():
    with pytest.raises(Forbidden, match="no PriorityClass with name nope was found"):
        created(pod(priorityClassName="nope"))


def test_label_keys_of_affinity_terms_are_written_into_their_selectors():
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["rev", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]
        },
    }
    found = created(labelled(pod(affinity=affinity), rev="7", tenant="t"))["spec"]["affinity"]
    required = found["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = found["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    assert required == preferred["podAffinityTerm"]
    assert required["labelSelector"] == {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["7"]},
            {"key": "tenant", "operator": "NotIn", "values": ["t"]},
        ],
    }


@pytest.mark.parametrize(
    ("resource", "raw", "path", "expected"),
    [
        pytest.param(
            NODES,
            {"metadata": {"name": "x"}, "status": {"capacity": {"cpu": "1"}}},
            ("status", "allocatable"),
            {"cpu": "1"},
            id="allocatable is the capacity",
        ),
        pytest.param(
            NAMESPACES,
            {"metadata": {"name": "x"}},
            ("metadata", "labels"),
            {"kubernetes.io/metadata.name": "x"},
            id="a namespace is labelled with its name",
        ),
        pytest.param(
            STORAGE_CLASSES,
            {"metadata": {"name": "x"}},
            ("volumeBindingMode",),
            "Immediate",
            id="storage classes bind at once",
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIMS,
            {"metadata": {"name": "x", "namespace": "default"}, "status": {"phase": "Bound"}},
            ("status",),
            {"phase": "Pending"},
            id="claims start pending",
        ),
        pytest.param(
            POD_DISRUPTION_BUDGETS,
            {"metadata": {"name": "x", "namespace": "default"}, "status": {"disruptionsAllowed": 3}},
            ("status",),
            {},
            id="budgets start without a status",
        ),
    ],
)
def test_other_kinds(resource, raw, path, expected):
    found: Any = new_store().create(resource, raw).raw
    for step in path:
        found = found[step]
    assert found == expected
