"""The API server away, forgetful, overloaded or cut off in the middle of a line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from mooring.api.resources import NODES, PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.conftest import ACCOUNT, grant
from tests.cluster.controlplane import ControlPlane, running
from tests.cluster.fault_proxy import Fault, FaultProxy, Seen
from tests.cluster.mooring_process import NAMESPACE
from tests.cluster.worlds import SCHEDULER, World

PATIENT = ("--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=80s")
"""Where the lease is not the subject: on a busy machine an API server may need more than 10 s to start."""


@pytest.fixture
def own_plane(programs: dict[str, str], tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that a test may take down; the shared one has companions that would not survive it."""
    with running(tmp_path / "plane", programs) as plane:
        grant(plane)
        yield plane


@pytest.fixture
def own_world(own_plane: ControlPlane, tmp_path: Path) -> Iterator[World]:
    config = own_plane.kubeconfig("mooring", token=own_plane.token("mooring", NAMESPACE))
    made = World("real", own_plane.api, tmp_path, config)
    yield made
    made.stop()


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    serving = plane.authority.server("fault-proxy")
    with FaultProxy(plane.server, plane.authority.file, serving) as made:
        yield made


@pytest.fixture
def proxied(world: World, plane: ControlPlane, proxy: FaultProxy) -> World:
    """Mooring behind the proxy, the test itself not."""
    token = plane.token("mooring", NAMESPACE)
    world.kubeconfig = plane.kubeconfig("proxied", token=token, server=proxy.server)
    return world


def make(count: int, prefix: str = "p") -> list[dict[str, object]]:
    return [objects.pod(f"{prefix}-{i}", scheduler=SCHEDULER, cpu="10m", memory="1Mi") for i in range(count)]


def bound_once(plane: ControlPlane, count: int) -> None:
    """A server that is killed may not have written down what it had just done; nothing may be there twice."""
    names = Counter(
        call.name
        for call in plane.calls(ACCOUNT)
        if call.right == ("", "pods/binding", "create") and call.code == 201
    )
    assert count * 0.9 < len(names) <= count
    assert set(names.values()) == {1}


def test_api_server_restarted_in_the_middle(own_world: World, own_plane: ControlPlane) -> None:
    """Killed and back on the same data while pods are bound: the process lives on, each pod is bound once."""
    count = 600
    own_world.nodes(*(f"n-{i}" for i in range(12)), cpu="64")
    process = own_world.mooring(qps=150, arguments=PATIENT)
    own_world.api.create_all(make(count), workers=4)
    eventually(lambda: len(own_world.bound()) > 50, 60, "some are bound")
    own_plane.stop_apiserver()
    time.sleep(3.0)
    assert process.running
    own_plane.start_apiserver()
    own_world.wait_all_bound(count, 120)
    assert process.running
    bound_once(own_plane, count)


def test_history_is_gone_when_the_api_server_returns(own_world: World, own_plane: ControlPlane) -> None:
    """etcd is compacted while the API server is away and objects change meanwhile: the watches get a 410,
    the kinds are listed anew, and nothing that was deleted stays in the cache."""
    own_world.nodes("n1", "n2", cpu="2")
    process = own_world.mooring(arguments=PATIENT)
    for name in ("a", "b"):
        own_world.pod(name, cpu="1500m")
        own_world.wait_bound(name)
    own_world.pod("waits", cpu="1500m")
    own_world.wait_refused("waits")
    # A second API server on the same store changes things behind the back of Mooring's watches.
    with ExitStack() as stack:
        process.signal(19)  # SIGSTOP: it reads nothing meanwhile
        stack.callback(process.signal, 18)
        for number in range(50):
            own_world.api.patch(NODES, "n1", {"metadata": {"labels": {"turn": str(number)}}}, "")
        own_world.api.delete(PODS, "a", now=True)
        own_plane.stop_apiserver()
        own_plane.compact_etcd()
        own_plane.start_apiserver()
        own_plane.compact_etcd()
    assert own_world.wait_bound("waits", 60)
    own_world.pod("after", cpu="100m")
    own_world.wait_bound("after", 30)
    assert process.running


def test_watches_cut_in_the_middle_of_a_line(proxied: World, plane: ControlPlane, proxy: FaultProxy) -> None:
    proxied.nodes(*(f"n-{i}" for i in range(5)), cpu="64")
    process = proxied.mooring()
    for turn in range(3):
        proxied.api.create_all(make(20, f"turn-{turn}"))
        proxy.cut_watches()
        eventually(partial(was_cut, proxied, proxy, turn + 2), 60, f"the watch of pods is cut, turn {turn}")
    proxied.wait_all_bound(60, 90)
    lists = [seen for seen in proxy.seen if seen.path == "/api/v1/pods" and not seen.watch]
    assert len(lists) <= 2, "a cut watch goes on from where it was; nothing is listed anew"
    assert process.running
    assert "Traceback" not in process.log_text()


def was_cut(world: World, proxy: FaultProxy, watches: int) -> bool:
    """Whether pods have been watched so often. Each look brings an event, which is cut in the middle."""
    world.api.patch(PODS, "turn-0-0", {"metadata": {"labels": {"look": str(time.monotonic_ns())}}})
    return sum(seen.path == "/api/v1/pods" and seen.watch for seen in proxy.seen) >= watches


STORMS = {
    "429 with Retry-After": Fault(lambda seen: not seen.lease, status=429, headers={"Retry-After": "1"}),
    "429 without": Fault(lambda seen: not seen.lease, status=429),
    "500": Fault(lambda seen: not seen.lease, status=500),
    "503": Fault(lambda seen: not seen.lease, status=503),
    "dropped connections": Fault(lambda seen: not seen.lease, drop=True),
}


@pytest.mark.parametrize("name", STORMS)
def test_storms(proxied: World, plane: ControlPlane, proxy: FaultProxy, name: str) -> None:
    """For five seconds the server answers everything but the lease badly; then all is made up for."""
    proxied.nodes(*(f"n-{i}" for i in range(5)), cpu="64")
    process = proxied.mooring()
    proxied.api.create_all(make(60, "before"))
    proxied.wait_all_bound(20, 30)
    with proxy.fault(STORMS[name]) as storm:
        proxied.api.create_all(make(60, "during"))
        proxy.cut_watches()
        proxied.api.patch(NODES, "n-0", {"metadata": {"labels": {"turn": "x"}}}, "")
        time.sleep(5.0)
        asked = storm.hits
    assert asked > 0
    assert asked < 5000, f"{asked} requests in five seconds of refusals: that is a storm of our own"
    proxied.wait_all_bound(120, 120)
    assert process.running
    assert_each_on_one_node(proxied, 120)


def assert_each_on_one_node(world: World, count: int) -> None:
    assert len(world.bound()) == count


def test_binds_that_time_out_or_lose_their_answer(
    proxied: World, plane: ControlPlane, proxy: FaultProxy
) -> None:
    """The server binds, the answer is lost: the outcome is found out, nothing is bound twice or elsewhere."""
    proxied.nodes(*(f"n-{i}" for i in range(5)), cpu="64")
    process = proxied.mooring()
    seen_before = len([call for call in plane.calls(ACCOUNT) if call.right == ("", "pods/binding", "create")])
    with proxy.fault(Fault(lambda seen: seen.bind, lose_answer=True, times=20)) as fault:
        proxied.api.create_all(make(60))
        proxied.wait_all_bound(60, 90)
    assert fault.hits == 20
    calls = [call for call in plane.calls(ACCOUNT) if call.right == ("", "pods/binding", "create")]
    accepted = Counter(call.name for call in calls[seen_before:] if call.code == 201)
    assert len(accepted) == 60
    assert set(accepted.values()) == {1}
    assert [seen for seen in proxy.seen if _is_get_of_pod(seen)], "the outcome was asked for"
    assert process.running


def _is_get_of_pod(seen: Seen) -> bool:
    return seen.method == "GET" and "/namespaces/default/pods/p-" in seen.path


def test_slow_answers_do_not_cost_the_lease(proxied: World, plane: ControlPlane, proxy: FaultProxy) -> None:
    proxied.nodes("n1", cpu="64")
    process = proxied.mooring()
    with proxy.fault(Fault(lambda seen: not seen.lease and not seen.watch, delay=3.0)):
        proxied.api.create_all(make(30))
        proxied.wait_all_bound(30, 120)
    assert process.running
    assert "lost" not in process.log_text().lower()
