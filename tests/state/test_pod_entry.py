"""What a pod costs, and that pods of one template share it."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.errors import QuantityError
from moorage.api.pod import (
    Container,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from moorage.state.columns import LIMIT, clamp
from moorage.state.pod_entry import PodEntries, PodEntry
from tests.state.objects import make_pod


def test_an_entry_has_requests_defaults_and_the_pod_itself():
    entry = PodEntry(make_pod("p", cpu="250m", gpu=0))

    assert dict(entry.requests) == {"cpu": 250, "nvidia.com/gpu": 0}
    assert entry.nonzero == (250, 200 << 20)
    assert {name: amount for name, amount, _ in entry.amounts if amount} == {"cpu": 250, "pods": 1}
    assert entry.uid == "p"


def test_a_decided_pod_is_bound_when_it_is_read():
    pending = make_pod("p", cpu="250m")
    entry = PodEntry(pending)
    assert entry.pod is pending

    entry.node_name = "n"
    assert entry.pod == make_pod("p", node="n", cpu="250m")
    assert entry.pod is entry.pod
    assert pending.spec.node_name == ""


def test_host_ports_are_those_taken_from_the_node():
    ports = (ContainerPort(host_port=80), ContainerPort(container_port=81))
    pod = Pod(spec=PodSpec(containers=(Container(ports=ports),)))

    assert PodEntry(pod).host_ports == (("TCP", "0.0.0.0", 80),)


def test_pods_of_one_template_share_their_demand():
    entries = PodEntries()
    one, two = entries.entry(make_pod("a", cpu="1")), entries.entry(make_pod("b", node="n", cpu="1"))

    assert one.requests is two.requests
    assert entries.entry(make_pod("c", cpu="2")).requests["cpu"] == 2000


def in_use(cpu: str, *conditions: PodCondition) -> PodStatus:
    status = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))
    return PodStatus(container_statuses=(status,), conditions=conditions)


INFEASIBLE = PodCondition(type="PodResizePending", reason="Infeasible")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(PodStatus(), 1000, id="as wanted"),
        pytest.param(in_use("2"), 2000, id="more is in use"),
        pytest.param(in_use("500m"), 1000, id="less is in use"),
        pytest.param(in_use("500m", INFEASIBLE), 500, id="the node refused"),
    ],
)
def test_a_resize_is_no_part_of_the_template(status, expected):
    entries = PodEntries()
    pod = make_pod("p", cpu="1")
    entries.entry(pod)

    assert entries.entry(msgspec.structs.replace(pod, status=status)).requests["cpu"] == expected


def test_remembered_templates_are_bounded():
    entries = PodEntries(max_remembered=1)
    first = entries.entry(make_pod("a", cpu="1"))
    entries.entry(make_pod("b", cpu="2"))

    assert entries.entry(make_pod("a", cpu="1")).requests is not first.requests


def test_absurd_and_bad_amounts():
    entries = PodEntries()

    assert entries.entry(make_pod("a", memory=10**30)).requests["memory"] == LIMIT
    with pytest.raises(QuantityError):
        entries.entry(make_pod("b", cpu="lots"))


@pytest.mark.parametrize("amount", [0, 1, -1, LIMIT, -LIMIT])
def test_clamp_leaves_amounts_within_the_limit_alone(amount):
    assert clamp(amount) == amount


def test_clamp_keeps_the_sign():
    assert (clamp(2**70), clamp(-(2**70))) == (LIMIT, -LIMIT)
