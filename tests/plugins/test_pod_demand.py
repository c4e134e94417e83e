"""What the resource plugins read of a pod: three readings, and one answer per template."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import ContainerStatus, ResourceRequirements
from moorage.api.requests import pod_nonzero_requests, pod_requests
from moorage.plugins.pod_demand import LIMIT, PodDemand, PodDemands
from moorage.testing import make_pod
from moorage.testing.builders import make_container

MIB = 1024 * 1024
GPU = "example.com/gpu"

requests = st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "unknown"]), st.integers(0, 9), max_size=4)
containers = st.lists(requests.map(lambda asked: make_container(requests=asked)), min_size=1, max_size=3)


def test_pod_level_requests_count_for_filtering_and_balance_only():
    pod = make_pod("a", cpu="1", resources=ResourceRequirements(requests={"cpu": "3", "memory": "1Gi"}))
    demand = PodDemand.of(pod)
    assert demand.filtered == (("cpu", 3000), ("memory", 1024 * MIB))
    assert demand.scored == {"cpu": 1000, "memory": 200 * MIB}
    assert demand.balanced == {"cpu": 3000, "memory": 1024 * MIB}


def test_no_amount_exceeds_the_limit():
    pod = make_pod("a", memory="9Ei", init_containers=[make_container("i", memory="9Ei", sidecar=True)])
    demand = PodDemand.of(pod)
    assert demand.filtered == (("memory", LIMIT),)
    assert demand.scored["memory"] == demand.balanced["memory"] == LIMIT


@given(containers, st.lists(requests.map(lambda asked: make_container(requests=asked)), max_size=2))
def test_readings_are_those_of_the_api(own, before):
    pod = make_pod("a", containers=own, init_containers=before)
    demand = PodDemand.of(pod)
    cpu, memory = pod_nonzero_requests(pod)
    counted = {name: n for name, n in pod_requests(pod).items() if n and name != "unknown"}
    assert dict(demand.filtered) == counted
    assert (demand.scored["cpu"], demand.scored["memory"]) == (cpu, memory)
    assert demand.balanced == pod_requests(pod)


def test_pods_of_one_template_share_an_answer():
    demands = PodDemands()
    assert demands.of(make_pod("a", cpu="1")) is demands.of(make_pod("b", cpu="1", labels={"x": "y"}))
    assert demands.of(make_pod("a", cpu="1")) != demands.of(make_pod("a", cpu="2"))


def test_the_oldest_template_goes_first():
    demands = PodDemands(max_remembered=6)
    first = demands.of(make_pod("a", cpu="1"))
    for amount in ("2", "3"):
        demands.of(make_pod("a", cpu=amount))
    again = demands.of(make_pod("a", cpu="1"))
    assert again is not first
    assert again == first


def test_what_a_kubelet_reports_is_no_part_of_a_template():
    demands = PodDemands()
    pod = make_pod("a", cpu="1")
    report = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "4"}))
    status = msgspec.structs.replace(pod.status, container_statuses=(report,))
    assert demands.of(pod).balanced == {"cpu": 1000}
    resized = demands.of(msgspec.structs.replace(pod, status=status))
    assert (resized.balanced, resized.filtered) == ({"cpu": 4000}, (("cpu", 1000),))
