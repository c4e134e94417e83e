"""Effective requests of pods, compared with tables and with a naive model."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

from collections import Counter
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import requests
from moorage.api.errors import QuantityError
from moorage.api.node import Node, NodeStatus
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
from moorage.api.requests import container_host_ports, node_allocatable, pod_nonzero_requests, pod_requests

MI = 1024 * 1024


def ask(name="c", *, sidecar=False, **amounts):
    wanted = {key.replace("_", "-"): amount for key, amount in amounts.items()}
    return Container(
        name=name, resources=ResourceRequirements(requests=wanted), restart_policy="Always" if sidecar else None
    )


def pod(*containers, init=(), status=None, **spec):
    return Pod(spec=PodSpec(containers=containers, init_containers=tuple(init), **spec), status=status or PodStatus())


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(), {}, id="nothing asked"),
        pytest.param(pod(ask(cpu=1), ask(cpu="500m")), {"cpu": 1500}, id="containers add up"),
        pytest.param(pod(ask(cpu="0.5m"), ask(cpu="0.5m")), {"cpu": 1}, id="rounded once, after the sum"),
        pytest.param(pod(ask(memory="0.1")), {"memory": 1}, id="bytes round up"),
        pytest.param(pod(ask(cpu=1), init=[ask(cpu=3)]), {"cpu": 3000}, id="a large init container wins"),
        pytest.param(pod(ask(cpu=3), init=[ask(cpu=1)]), {"cpu": 3000}, id="a small init container does not"),
        pytest.param(pod(ask(cpu=1), init=[ask(cpu=2, sidecar=True)]), {"cpu": 3000}, id="a sidecar adds"),
        pytest.param(
            pod(ask(cpu=1), init=[ask(cpu=2, sidecar=True), ask(cpu=4)]), {"cpu": 6000}, id="sidecar before init"
        ),
        pytest.param(
            pod(ask(cpu=1), init=[ask(cpu=4), ask(cpu=2, sidecar=True)]), {"cpu": 4000}, id="sidecar after init"
        ),
        pytest.param(
            pod(ask(cpu=1), overhead={"cpu": "250m", "memory": "1Mi"}), {"cpu": 1250, "memory": MI}, id="overhead"
        ),
        pytest.param(
            pod(ask(cpu=1, memory="1Mi"), resources=ResourceRequirements(requests={"cpu": "4", "x.io/y": "9"})),
            {"cpu": 4000, "memory": MI},
            id="pod level replaces only what it may",
        ),
        pytest.param(
            pod(ask(cpu=1), resources=ResourceRequirements(requests={"cpu": "4"}), overhead={"cpu": "1"}),
            {"cpu": 5000},
            id="overhead on top of pod level",
        ),
        pytest.param(
            pod(ask(cpu=4), resources=ResourceRequirements(limits={"cpu": "9"})), {"cpu": 4000}, id="only pod limits"
        ),
        pytest.param(pod(ask(**{"nvidia.com/gpu": 2})), {"nvidia.com/gpu": 2}, id="extended resource"),
    ],
)
def test_pod_requests(subject, expected):
    assert expected == pod_requests(subject)


def resized(wanted, in_use, allocated, *, reason=None, sidecar=False):
    reported = ContainerStatus(
        name="c",
        allocated_resources={"cpu": allocated} if allocated else {},
        resources=None if in_use is None else ResourceRequirements(requests={"cpu": in_use}),
    )
    conditions = (PodCondition(type="PodResizePending", status="True", reason=reason),) if reason else ()
    if sidecar:
        status = PodStatus(init_container_statuses=(reported,), conditions=conditions)
        return pod(init=[ask(cpu=wanted, sidecar=True)], status=status)
    return pod(ask(cpu=wanted), status=PodStatus(container_statuses=(reported,), conditions=conditions))


@pytest.mark.parametrize(
    ("subject", "milli"),
    [
        pytest.param(resized(1, "2", "3"), 3000, id="the largest of three counts"),
        pytest.param(resized(4, "2", "3"), 4000, id="growing: the wanted value counts"),
        pytest.param(resized(4, "2", "3", reason="Deferred"), 4000, id="deferred: still wanted"),
        pytest.param(resized(4, "2", "3", reason="Infeasible"), 3000, id="infeasible: not wanted any more"),
        pytest.param(resized(4, None, "9"), 9000, id="allocated amounts count without actual ones"),
        pytest.param(resized(1, "2", "3", sidecar=True), 3000, id="sidecars are resized as well"),
    ],
)
def test_a_resize_counts_with_the_largest_value(subject, milli):
    assert pod_requests(subject) == {"cpu": milli}


def test_without_status_only_the_spec_counts():
    assert pod_requests(resized(1, "2", "3"), use_status=False) == {"cpu": 1000}


def test_an_ordinary_init_container_is_read_from_the_status_too():
    reported = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "9"}))
    assert pod_requests(pod(init=[ask(cpu=1)], status=PodStatus(init_container_statuses=(reported,)))) == {"cpu": 9000}


@pytest.mark.parametrize(("reason", "milli"), [(None, 8000), ("Infeasible", 6000)])
def test_a_pod_level_resize_counts_as_one_of_a_container(reason, milli):
    conditions = (PodCondition(type="PodResizePending", reason=reason),) if reason else ()
    status = PodStatus(
        conditions=conditions, allocated_resources={"cpu": "6"}, resources=ResourceRequirements(requests={"cpu": "5"})
    )
    wanted = ResourceRequirements(requests={"cpu": "8"})
    assert pod_requests(pod(ask(cpu=1), resources=wanted, status=status)) == {"cpu": milli}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(ask(), ask()), (200, 400 * MI), id="each container gets both defaults"),
        pytest.param(pod(ask(cpu=1), ask()), (1100, 400 * MI), id="only missing requests get one"),
        pytest.param(pod(ask(cpu=0, memory=0)), (0, 0), id="an explicit zero stays"),
        pytest.param(pod(), (0, 0), id="no container, no default"),
        pytest.param(pod(ask(cpu=1), init=[ask(cpu="10m", sidecar=True)]), (1010, 400 * MI), id="sidecars too"),
        pytest.param(
            pod(ask(), resources=ResourceRequirements(requests={"cpu": "2"})), (2000, 200 * MI), id="pod level cpu"
        ),
        pytest.param(
            pod(ask(memory="1Mi"), ask(), resources=ResourceRequirements(requests={"cpu": "2"})),
            (2000, MI),
            id="with pod level, a request of one container suffices",
        ),
        pytest.param(pod(ask(), overhead={"cpu": "50m"}), (150, 200 * MI), id="overhead on top"),
    ],
)
def test_pod_nonzero_requests(subject, expected):
    assert expected == pod_nonzero_requests(subject)


def test_node_allocatable_is_exact_beyond_64_bits_and_below_zero():
    node = Node(status=NodeStatus(allocatable={"cpu": "9223372036854775807", "memory": "-1", "pods": 110}))
    assert node_allocatable(node) == {"cpu": (2**63 - 1) * 1000, "memory": -1, "pods": 110}
    assert node_allocatable(Node()) == {}


def test_a_bad_quantity_is_reported():
    with pytest.raises(QuantityError):
        pod_requests(pod(ask(cpu="many")))


def test_host_ports_of_containers_and_sidecars():
    def listening(*ports, sidecar=False):
        return Container(ports=ports, restart_policy="Always" if sidecar else None)

    subject = pod(
        listening(ContainerPort(host_port=80), ContainerPort(container_port=81)),
        init=[
            listening(ContainerPort(host_port=53, protocol="UDP", host_ip="10.0.0.1"), sidecar=True),
            listening(ContainerPort(host_port=99)),
        ],
    )
    assert container_host_ports(subject) == (("TCP", "0.0.0.0", 80), ("UDP", "10.0.0.1", 53))


@pytest.mark.parametrize(
    ("name", "extended", "native", "scalar"),
    [
        ("cpu", False, True, False),
        ("memory", False, True, False),
        ("nvidia.com/gpu", True, False, True),
        ("kubernetes.io/batch-cpu", False, True, True),
        ("example.kubernetes.io/x", False, True, True),
        ("hugepages-2Mi", False, True, True),
        ("attachable-volumes-csi-x", False, True, True),
        ("requests.example.com/x", False, False, False),
        ("example.com/", False, False, False),
        ("Example.com/x", False, False, False),
        (f"example.com/{'x' * 63}", True, False, True),
        (f"example.com/{'x' * 64}", False, False, False),
        ("a/b/c", False, False, False),
    ],
)
def test_resource_names(name, extended, native, scalar):
    assert extended is requests.is_extended_resource(name)
    assert native is requests.is_native_resource(name)
    assert scalar is requests.is_scalar_resource(name)


_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "x.io/gpu"]), st.integers(0, 9).map(str), max_size=3)


def _naive(containers, init, overhead):
    """The definition, step by step: one snapshot of what runs for every moment of the pod's life."""
    moments = []
    sidecars: Counter[str] = Counter()
    for amounts, is_sidecar in init:
        moments.append(sidecars + Counter(amounts))
        if is_sidecar:
            sidecars = sidecars + Counter(amounts)
    moments.append(sum((Counter(amounts) for amounts in containers), sidecars))
    names = {name for moment in moments for name in moment} | set(overhead)
    return {name: max(moment[name] for moment in moments) + overhead.get(name, 0) for name in names}


@given(st.lists(_AMOUNTS, max_size=3), st.lists(st.tuples(_AMOUNTS, st.booleans()), max_size=4), _AMOUNTS)
def test_pod_requests_equal_a_naive_model(containers, init, overhead):
    subject = pod(
        *(ask(**amounts) for amounts in containers),
        init=[ask(sidecar=is_sidecar, **amounts) for amounts, is_sidecar in init],
        overhead=overhead,
    )
    numbers = [{k: int(v) for k, v in amounts.items()} for amounts in containers]
    steps = [({k: int(v) for k, v in amounts.items()}, is_sidecar) for amounts, is_sidecar in init]
    expected = _naive(numbers, steps, {k: int(v) for k, v in overhead.items()})
    scaled = {name: amount * 1000 if name == "cpu" else amount for name, amount in expected.items()}
    found = pod_requests(subject)
    assert {k: v for k, v in scaled.items() if v} == {k: v for k, v in found.items() if v}


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=5))
def test_fractions_of_units_are_rounded_once(nanos):
    subject = pod(*(ask(cpu=f"{n}n", memory=f"{n}n") for n in nanos))
    total = Fraction(sum(nanos), 10**9)
    assert pod_requests(subject) == {"cpu": ceil(total * 1000), "memory": ceil(total)}
