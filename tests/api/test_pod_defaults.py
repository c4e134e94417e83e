"""Defaults of the API server that scheduling depends on, for pods that were written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.pod_defaults import fill_in_resources, with_decoding_defaults, with_defaults
from moorage.api.requests import container_host_ports, pod_requests
from moorage.api.resources import PODS
from moorage.api.versions import BEHAVIOURS


def pod(**spec: Any) -> Pod:
    found = decoding.convert(PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert isinstance(found, Pod)
    return found


def container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": resources}


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_requests_default_to_limits_one_by_one(field):
    given = pod(**{field: [container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"})]})
    assert pod_requests(given) == {"cpu": 1000}
    assert pod_requests(with_defaults(given)) == {"cpu": 1000, "memory": 1 << 30}


@pytest.mark.parametrize("on_host", [True, False])
def test_on_the_host_network_container_ports_are_host_ports(on_host):
    ports = [{"containerPort": 80}, {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"}]
    given = pod(hostNetwork=on_host, containers=[{"name": "c", "ports": ports}])
    expected = [("TCP", "0.0.0.0", 80)] if on_host else []
    assert container_host_ports(with_defaults(given)) == (*expected, ("UDP", "0.0.0.0", 5353))


ASKING = container("a", requests={"cpu": "1"})
SIDECAR = {**container("s", requests={"cpu": "500m"}), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        pytest.param({"limits": {"cpu": "4", "memory": "2Gi"}}, {"cpu": 1500, "memory": 2 << 30}, id="limits"),
        pytest.param({"requests": {"memory": "1Gi"}}, {"cpu": 1500, "memory": 1 << 30}, id="some requests"),
        pytest.param({"limits": {"hugepages-2Mi": "4Mi"}}, {"cpu": 1500, "hugepages-2Mi": 4 << 20}, id="huge pages"),
        pytest.param({"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}, {"cpu": 3000}, id="nothing is missing"),
    ],
)
def test_pod_level_requests_default_to_the_containers_then_to_limits(whole, expected):
    filled = with_defaults(pod(containers=[ASKING], initContainers=[SIDECAR], resources=whole))
    assert filled.spec.resources is not None
    assert pod_requests(filled) == expected
    assert set(filled.spec.resources.requests) == set(expected)


def test_a_complete_pod_is_returned_as_it_is():
    given = pod(containers=[container(limits={"cpu": "1"}, requests={"cpu": "1"})])
    assert with_defaults(given) is given


@pytest.mark.parametrize(("version", "filled"), [("1.36", {"cpu", "memory"}), ("1.37", set())])
def test_decoding_fills_in_pod_level_requests_up_to_1_36(version, filled):
    given = pod(containers=[ASKING], resources={"limits": {"memory": "1Gi"}})
    found = with_decoding_defaults(given, BEHAVIOURS[version])
    assert found.spec.resources is not None
    assert set(found.spec.resources.requests) == filled


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "none"},
        {"containers": [None, 3, {"resources": []}, {"resources": {"limits": "all"}}], "hostNetwork": True},
        {"containers": [{"ports": ["http", None]}], "hostNetwork": True},
        {"resources": "many"},
        {"resources": {"limits": {"cpu": "1"}}, "containers": [{"resources": {"requests": {"cpu": "?"}}}, 7]},
    ],
)
def test_wrong_types_stay_for_validation(spec):
    assert fill_in_resources(spec).keys() == spec.keys()
