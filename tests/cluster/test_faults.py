"""The API server away, forgetful, overloaded or cut off in the middle of a line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from moorage.api.resources import EVENTS, NODES, PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.conftest import ACCOUNT, grant
from tests.cluster.controlplane import ControlPlane, running
from tests.cluster.fault_proxy import Fault, FaultProxy, Seen
from tests.cluster.moorage_process import LEASE_SECONDS, NAMESPACE, RENEW_SECONDS, RETRY_SECONDS, MoorageProcess
from tests.cluster.worlds import SCHEDULER, World

HARMLESS_SECONDS = RENEW_SECONDS - 2 * RETRY_SECONDS
"""An API server that is away for so long costs nothing: the last renewal was a retry period old at most, and
there is time for another try before its deadline."""
QPS = 150
"""Slow enough that there is a middle."""
LOST = "leader election lost"
ENDING_SECONDS = 12.0
"""For a process that has lost its lease to end: five for the binds that it has sent, one for its events."""


@pytest.fixture
def own_plane(programs: dict[str, str], tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that a test may take down; the shared one has companions that would not survive it."""
    with running(tmp_path / "plane", programs) as plane:
        grant(plane)
        yield plane


@pytest.fixture
def own_world(own_plane: ControlPlane, tmp_path: Path) -> Iterator[World]:
    config = own_plane.kubeconfig("moorage", token=own_plane.token("moorage", NAMESPACE))
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
    """Moorage behind the proxy, the test itself not."""
    token = plane.token("moorage", NAMESPACE)
    world.kubeconfig = plane.kubeconfig("proxied", token=token, server=proxy.server)
    return world


def make(count: int, prefix: str = "p") -> list[dict[str, object]]:
    return [objects.pod(f"{prefix}-{i}", scheduler=SCHEDULER, cpu="10m", memory="1Mi") for i in range(count)]


def bound_once(plane: ControlPlane, count: int) -> None:
    """A server that is killed may not have written down what it had just done; nothing may be there twice."""
    names = Counter(
        call.name for call in plane.calls(ACCOUNT) if call.right == ("", "pods/binding", "create") and call.code == 201
    )
    assert count * 0.9 < len(names) <= count
    assert set(names.values()) == {1}


def goes_on(process: MoorageProcess, away: float) -> bool:
    """Whether the process outlived a time in which it could not renew its lease. It must if that was short.
    It must not if it was longer than the lease, and ends with 1 as kube-scheduler does. Between the two it
    depends on when it tried, and on how soon the server answered, which is before it calls itself ready."""
    if away <= HARMLESS_SECONDS:
        assert process.running, f"the process ended although it was {away:.1f} s only:\n{process.last_lines()}"
        assert LOST not in process.log_text()
        return True
    deadline = time.monotonic() + RENEW_SECONDS
    while LOST not in process.log_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    if LOST not in process.log_text():
        assert away <= LEASE_SECONDS, f"the process went on after {away:.1f} s without a renewal"
        return True
    assert process.wait(ENDING_SECONDS) == 1, "a leader that lost its lease ends with 1"
    return False


def bind_some(world: World, count: int) -> MoorageProcess:
    """A process in the middle of binding so many pods, which were there before it."""
    world.nodes(*(f"n-{i}" for i in range(12)), cpu="64")
    world.api.create_all(make(count), workers=4)
    process = world.moorage(qps=QPS)
    bound = eventually(lambda: len(world.bound()) > 50 and len(world.bound()), 60, "some are bound")
    print(f"{bound} of {count} pods are bound")
    assert bound < count * 0.9, "there is no middle any more; lower QPS"
    return process


def test_api_server_restarted_in_the_middle(own_world: World, own_plane: ControlPlane) -> None:
    """Killed and back on the same data while pods are bound: each pod is bound once, and a process that had
    the time to renew its lease lives on."""
    count = 600
    process = bind_some(own_world, count)
    stopped = time.monotonic()
    own_plane.stop_apiserver()
    own_plane.start_apiserver()
    away = time.monotonic() - stopped
    lived = goes_on(process, away)
    print(f"the API server was away for {away:.1f} s; the process {'went on' if lived else 'ended'}")
    if not lived:
        own_world.moorage(name="again", qps=QPS)
    own_world.wait_all_bound(count, 120)
    bound_once(own_plane, count)
    if lived:
        assert process.running


def test_api_server_away_for_longer_than_the_lease(own_world: World, own_plane: ControlPlane) -> None:
    """The leader ends by itself, without a server to ask; started again, as a kubelet would, it waits for the
    end of the lease that the former process could not release, and binds the rest, each pod once."""
    count = 600
    process = bind_some(own_world, count)
    stopped = time.monotonic()
    own_plane.stop_apiserver()
    assert process.wait(RENEW_SECONDS + ENDING_SECONDS) == 1
    ended = time.monotonic() - stopped
    print(f"the process ended {ended:.1f} s after the API server")
    assert LOST in process.log_text()
    assert ended >= RENEW_SECONDS - RETRY_SECONDS, "it gave up before its deadline"
    time.sleep(max(0.0, LEASE_SECONDS + 1.0 - ended))
    own_plane.start_apiserver()
    assert len(own_world.bound()) < count
    own_world.moorage(name="again", qps=QPS)
    own_world.wait_all_bound(count, 120)
    bound_once(own_plane, count)


def test_history_is_gone_when_the_api_server_returns(own_world: World, own_plane: ControlPlane) -> None:
    """Objects change while all watches are cut off, then etcd is compacted and the API server begins anew:
    the watches get a 410, the kinds are listed again, and nothing that was deleted stays in the cache.

    The lease is not cut off, so that nothing but the restart itself can cost it."""
    own_world.nodes("n1", "n2", cpu="2")
    with FaultProxy(own_plane.server, own_plane.authority.file, own_plane.authority.server("fault-proxy")) as proxy:
        token = own_plane.token("moorage", NAMESPACE)
        own_world.kubeconfig = own_plane.kubeconfig("proxied", token=token, server=proxy.server)
        process = own_world.moorage()
        for name in ("a", "b"):
            own_world.pod(name, cpu="1500m")
            own_world.wait_bound(name)
        own_world.pod("waits", cpu="1500m")
        own_world.wait_refused("waits")
        lists = listed(process)
        with proxy.fault(Fault(lambda seen: not seen.lease, drop=True)):
            proxy.cut_watches()
            for number in range(50):
                own_world.api.patch(NODES, "n1", {"metadata": {"labels": {"turn": str(number)}}}, "")
            own_world.api.delete(PODS, "a", now=True)
            stopped = time.monotonic()
            own_plane.stop_apiserver()
            own_plane.compact_etcd()
            own_plane.start_apiserver()
            away = time.monotonic() - stopped
        lived = goes_on(process, away)
        print(f"the API server was away for {away:.1f} s; the process {'went on' if lived else 'ended'}")
        if not lived:
            own_world.moorage(name="again")
        assert own_world.wait_bound("waits", 60)
        own_world.pod("after", cpu="100m")
        own_world.wait_bound("after", 30)
        if lived:
            for kind, count in lists.items():
                # Each kind has a pause of its own between its tries.
                eventually(partial(listed_again, process, kind, count), 60, f"{kind} are listed anew")
            assert process.running
        own_world.stop()


def listed(process: MoorageProcess) -> dict[str, int]:
    """How many lists of a kind it has taken over, as it says in its log."""
    text = process.log_text()
    return {kind: text.count(f'"Listed" resource="{kind}"') for kind in ("nodes", "pods")}


def listed_again(process: MoorageProcess, kind: str, before: int) -> bool:
    return listed(process)[kind] > before


def test_watches_cut_in_the_middle_of_a_line(proxied: World, plane: ControlPlane, proxy: FaultProxy) -> None:
    proxied.nodes(*(f"n-{i}" for i in range(5)), cpu="64")
    process = proxied.moorage()
    # Before that a new leader may list, to compare its cache.
    eventually(lambda: '"Scheduling"' in process.log_text(), 60, "it leads")
    lists = count_lists(proxy)
    for turn in range(3):
        proxied.api.create_all(make(20, f"turn-{turn}"))
        proxy.cut_watches()
        eventually(partial(was_cut, proxied, proxy, turn + 2), 60, f"the watch of pods is cut, turn {turn}")
    proxied.wait_all_bound(60, 90)
    assert count_lists(proxy) == lists, "a cut watch goes on from where it was; nothing is listed anew"
    assert process.running
    assert "Traceback" not in process.log_text()


def count_lists(proxy: FaultProxy) -> int:
    return sum(seen.path == "/api/v1/pods" and not seen.watch and not seen.probe for seen in proxy.seen)


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
    process = proxied.moorage()
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
    wait_all_scheduled(proxied, 120)


def wait_all_scheduled(world: World, count: int) -> None:
    """Every pod has its one event; events are tried again after pauses of up to twenty seconds."""

    def scheduled() -> Counter[str]:
        events = world.api.list(EVENTS)
        return Counter(event["regarding"]["name"] for event in events if event["reason"] == "Scheduled")

    deadline = time.monotonic() + 60
    while len(found := scheduled()) < count and time.monotonic() < deadline:
        time.sleep(0.5)
    assert sorted(world.bound().keys() - found.keys()) == []
    assert set(found.values()) == {1}


def test_events_that_lose_their_answer(proxied: World, plane: ControlPlane, proxy: FaultProxy) -> None:
    """The server writes an event and the answer is lost, or refuses it for a while: each is there once."""
    proxied.nodes(*(f"n-{i}" for i in range(5)), cpu="64")
    process = proxied.moorage()
    lost = Fault(lambda seen: seen.new_event, lose_answer=True, times=3)
    refused = Fault(lambda seen: seen.new_event, status=403, times=20)
    with proxy.fault(lost), proxy.fault(refused):
        proxied.api.create_all(make(30))
        proxied.wait_all_bound(30, 60)
        wait_all_scheduled(proxied, 30)
    assert (lost.hits, refused.hits) == (3, 20)
    assert process.running


def assert_each_on_one_node(world: World, count: int) -> None:
    assert len(world.bound()) == count


def test_binds_that_time_out_or_lose_their_answer(proxied: World, plane: ControlPlane, proxy: FaultProxy) -> None:
    """The server binds, the answer is lost: the outcome is found out, nothing is bound twice or elsewhere."""
    proxied.nodes(*(f"n-{i}" for i in range(5)), cpu="64")
    process = proxied.moorage()
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
    process = proxied.moorage()
    with proxy.fault(Fault(lambda seen: not seen.lease and not seen.watch, delay=3.0)):
        proxied.api.create_all(make(30))
        proxied.wait_all_bound(30, 120)
    assert process.running
    assert "lost" not in process.log_text().lower()
