"""Who may bind: replicas that are killed, stopped or blocked, judged by the API server's audit log."""

from __future__ import annotations

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from moorage.api.resources import LEASES
from moorage.client.lease import JITTER
from moorage.run import takeover
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.conftest import ACCOUNT
from tests.cluster.controlplane import Call, ControlPlane
from tests.cluster.moorage_process import LEASE, LEASE_SECONDS, NAMESPACE, RENEW_SECONDS, RETRY_SECONDS, MoorageProcess
from tests.cluster.worlds import SCHEDULER, World

TAKEOVER_SECONDS = LEASE_SECONDS + 2 * RETRY_SECONDS * JITTER
"""From the end of a leader to the lease of another. The other saw the last renewal late by a pause at most,
which is 1 + JITTER retry periods, and takes the lease when its time from there is over: `Candidate.pause`."""
SYNC_SECONDS = takeover.PROBE
"""From the lease to a cache that is proven to be as new. A watch that is quiet shows no version by itself; a
second one does, at the latest when it ends."""
FIRST_SECONDS = 0.5
"""From there to the first bind: an attempt and a request."""


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def binds(plane: ControlPlane, since: float) -> list[Call]:
    """Bind requests of Moorage, oldest first, by the time they arrived."""
    found = [
        call
        for call in plane.calls(ACCOUNT)
        if call.right == ("", "pods/binding", "create") and seconds(call.received) >= since
    ]
    return sorted(found, key=lambda call: call.received)


def leader(world: World) -> str:
    found = world.api.find(LEASES, LEASE, NAMESPACE)
    return str(found["spec"].get("holderIdentity") or "") if found else ""


def identity(process: MoorageProcess) -> str:
    """As the process says it in its log."""
    pattern = re.compile(r'"Attempting to acquire leader lease".* identity="([^"]+)"')
    found = eventually(lambda: pattern.search(process.log_text()), 30, f"{process.name} is a candidate")
    return str(found[1])


def synced(process: MoorageProcess) -> float:
    """How long a new leader took to prove that its cache is as new as its lease, as it says in its log."""
    found = re.search(r'"The cache has caught up with the lease" seconds=(\S+)', process.log_text())
    assert found is not None, "the new leader did not compare its cache"
    return float(found[1])


def acquired(world: World) -> float:
    """When the present holder got the lease."""
    return seconds(world.api.get(LEASES, LEASE, NAMESPACE)["spec"]["acquireTime"])


def test_the_leader_is_killed_in_the_middle_of_2000_binds(world: World, plane: ControlPlane) -> None:
    """The other binds within lease + 2 retries with jitter + sync, where sync is what it measured itself and
    is bounded in turn; every pod is bound exactly once."""
    count = 2000
    qps = 150  # slow enough that the kill comes before the end
    world.nodes(*(f"n-{i}" for i in range(40)), cpu="64", pods="110")
    first = world.moorage(name="first", qps=qps)
    eventually(lambda: leader(world) == identity(first), 30, "the first leads")
    second = world.moorage(name="second", qps=qps)
    began = time.time()
    pods = [objects.pod(f"p-{i}", scheduler=SCHEDULER, cpu="10m", memory="1Mi") for i in range(count)]
    with ThreadPoolExecutor(1) as creating:
        created = creating.submit(world.api.create_all, pods, workers=4)
        eventually(lambda: count // 4 < len(world.bound()), 60, "a quarter is bound")
        first.kill()
        killed = time.time()
        before = len(world.bound())
        created.result()
    assert before < count, "all were bound before the leader was killed; lower qps"
    bound = world.wait_all_bound(count, 120)
    assert leader(world) == identity(second)
    calls = binds(plane, began)
    taken, sync = acquired(world), synced(second)
    # What the first had sent before its end may still have been on its way.
    after = [call for call in calls if seconds(call.received) > taken]
    assert after, "the second never bound anything"
    waited = seconds(after[0].received) - killed
    print(
        f"killed after {before} binds; the other had the lease {taken - killed:.1f} s later, was synced in "
        f"{sync:.1f} s, and bound for the first time {waited:.1f} s after the kill"
    )
    assert taken - killed <= TAKEOVER_SECONDS
    assert sync <= SYNC_SECONDS
    assert waited <= TAKEOVER_SECONDS + sync + FIRST_SECONDS
    between = [call for call in calls if killed + 1.0 < seconds(call.received) <= taken]
    assert not between, "somebody bound without a lease"
    accepted = Counter(call.name for call in calls if call.code == 201)
    assert set(accepted.values()) == {1}, accepted.most_common(3)
    assert len(accepted) == count == len(bound)


def test_a_blocked_leader_steps_down_and_binds_no_more(world: World, plane: ControlPlane) -> None:
    """A plugin blocks for 20 s: a loop that hangs is not renewed, the lease is lost, and no bind of
    the old leader arrives after its end, although the attempt goes on where it was."""
    world.nodes("n1", "n2")
    plugin = {"name": "tests.cluster.sample_plugins:Blocker"}
    profile = {"schedulerName": SCHEDULER, "plugins": {"filter": {"enabled": [plugin]}}}
    first = world.moorage(profile, name="first")
    eventually(lambda: leader(world) == identity(first), 30, "the first leads")
    second = world.moorage(name="second")
    world.pod("before")
    world.wait_bound("before")
    began = time.time()
    world.pod("blocks", labels={"block": "please"})
    time.sleep(0.5)
    world.pod("behind")
    eventually(lambda: leader(world) == identity(second), 40, "the second leads")
    lost = time.time()
    world.wait_bound("blocks", 40)
    world.wait_bound("behind", 40)
    assert first.wait(40) == 1, "a leader that lost its lease ends with 1"
    calls = binds(plane, began)
    taken = acquired(world)
    assert all(seconds(call.received) >= taken for call in calls), "bound while the old one was blocked"
    assert {call.name for call in calls} == {"blocks", "behind"}
    assert len(calls) == 2, "each once, by the new leader"
    print(f"blocked for 20 s; the other had the lease {lost - began:.1f} s after the beginning")
    # The lease is renewed as long as the heartbeat is younger than the renew deadline.
    assert lost - began <= RENEW_SECONDS + TAKEOVER_SECONDS


def test_a_stopped_leader_drains_and_hands_over_at_once(world: World, plane: ControlPlane) -> None:
    """SIGTERM in the middle of binds: exit code 0, the lease is given back, the other need not wait."""
    count = 400
    world.nodes(*(f"n-{i}" for i in range(10)), cpu="64")
    first = world.moorage(name="first", qps=100)
    eventually(lambda: leader(world) == identity(first), 30, "the first leads")
    world.moorage(name="second", qps=100)
    began = time.time()
    pods = [objects.pod(f"p-{i}", scheduler=SCHEDULER, cpu="10m", memory="1Mi") for i in range(count)]
    with ThreadPoolExecutor(1) as creating:
        created = creating.submit(world.api.create_all, pods, workers=4)
        eventually(lambda: len(world.bound()) > count // 4, 60, "a quarter is bound")
        assert first.stop() == 0
        ended = time.time()
        created.result()
    world.wait_all_bound(count, 60)
    accepted = Counter(call.name for call in binds(plane, began) if call.code == 201)
    assert len(accepted) == count
    assert set(accepted.values()) == {1}
    later = [call for call in binds(plane, began) if seconds(call.received) > ended]
    assert later, "the first bound everything while it stopped"
    waited = seconds(later[0].received) - ended
    print(f"the other bound for the first time {waited:.1f} s after the end of the first")
    assert waited < RETRY_SECONDS * (1 + JITTER) + SYNC_SECONDS + FIRST_SECONDS


def test_standbys_do_nothing(world: World, plane: ControlPlane) -> None:
    world.nodes("n1")
    first = world.moorage(name="first")
    eventually(lambda: leader(world) == identity(first), 30, "the first leads")
    second = world.moorage(name="second")
    for number in range(20):
        world.pod(f"p-{number}", cpu="10m")
    world.wait_all_bound(20, 30)
    assert "Attempting to schedule pod" in first.log_text()
    assert "Attempting to schedule pod" not in second.log_text()
