"""kube-scheduler and Moorage on the same nodes, each for its own pods, under load.

Neither can know what the other binds in the moment in which it binds itself; against everything that its
watch had shown it neither may overcommit. That is judged in two ways:

- By resource versions, exactly and without a clock. A watch shows pods in the order of their versions. Who
  binds a pod was shown its creation, so it was also shown every bind of the other with a lower version. That
  is less than it may have been shown, so whatever this finds is a fault. It holds for Moorage, which takes
  events in the order of the watch; kube-scheduler may hand pods to its queue and to its cache by different
  goroutines.
- By the times of the audit log, for both, and for what is bound after the last creation: a bind that was
  answered a second before another one arrived must have been shown. What a process has read from its
  connection cannot be seen from outside, so this way needs the allowance.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moorage.api.quantity import milli_value
from moorage.api.resources import PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.conftest import ACCOUNT
from tests.cluster.controlplane import ControlPlane
from tests.cluster.worlds import SCHEDULER, World

KUBE = "system:kube-scheduler"
NODES, CPU = 12, 8000
PODS_EACH = 330
PATIENCE = 1.0
"""Seconds until a watch must have delivered a bind, on a machine with two busy cores."""


@dataclass(frozen=True, slots=True)
class Bind:
    """An accepted bind."""

    pod: str
    user: str
    node: str
    milli: int
    sent: float
    """When the request arrived: the decision is older than this."""
    done: float
    """When it was answered: from here on watches tell of it."""
    version: int
    """The version of the pod, which has not been changed since."""


def test_neither_overcommits_against_what_it_could_know(world: World, plane: ControlPlane) -> None:
    world.nodes(*(f"n-{i:02}" for i in range(NODES)), cpu=f"{CPU}m", pods="110")
    kube = plane.start_kube_scheduler(objects.scheduler_config())
    try:
        process = world.moorage()
        before = len(binds(plane, {}))
        created = create_both(world)
        eventually(lambda: settled(world), 120, "every pod is bound or refused")
        done = binds(plane, pods_by_name(world))[before:]
    finally:
        kube.stop()
    assert process.running
    users = {user: [bind for bind in done if bind.user == user] for user in (KUBE, ACCOUNT)}
    assert min(len(found) for found in users.values()) > 100, {user: len(b) for user, b in users.items()}
    shown = [what_was_shown(done, created, node) for node in sorted({bind.node for bind in done})]
    assert [found for found in shown if found.milli > CPU] == []
    for user in users:
        assert unexcused(done, user) == []
    races = overcommitted(done)
    proven, others = sum(found.others for found in shown), len(users[KUBE])
    print(
        f"binds: {[len(b) for b in users.values()]}; {proven} of the other's are proven to have been shown; "
        f"overcommits by the race itself: {len(races)}"
    )
    assert proven > others / 2, "too few to judge by: pods are created much faster than they are bound"


def create_both(world: World) -> dict[str, int]:
    """Both at once, so that the two schedulers meet. Pod → the version in which it was created."""
    created: dict[str, int] = {}

    def create(prefix: str, scheduler: str) -> None:
        pods = [objects.pod(f"{prefix}-{i}", scheduler=scheduler, cpu="150m") for i in range(PODS_EACH)]
        for pod in world.api.create_all(pods, workers=3):
            created[pod["metadata"]["name"]] = int(pod["metadata"]["resourceVersion"])

    threads = [
        threading.Thread(target=create, args=args) for args in (("kube", "default-scheduler"), ("moor", SCHEDULER))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return created


def settled(world: World) -> bool:
    pods = world.api.list(PODS)
    return len(pods) == 2 * PODS_EACH and all(
        pod["spec"].get("nodeName") or _refused(pod["status"].get("conditions", ())) for pod in pods
    )


def _refused(conditions: Any) -> bool:
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


def pods_by_name(world: World) -> dict[str, Any]:
    return {pod["metadata"]["name"]: pod for pod in world.api.list(PODS)}


def binds(plane: ControlPlane, pods: dict[str, Any]) -> list[Bind]:
    found = []
    for call in plane.calls():
        if call.right == ("", "pods/binding", "create") and call.code == 201:
            pod = pods.get(call.name)
            milli = milli_value(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) if pod else 0
            node = pod["spec"].get("nodeName", "") if pod else ""
            version = int(pod["metadata"]["resourceVersion"]) if pod else 0
            times = _time(call.received), _time(call.answered)
            found.append(Bind(call.name, call.user, node, milli, *times, version))
    return found


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@dataclass(frozen=True, slots=True)
class Shown:
    """What Moorage knew of a node, at least, when it chose it for the last time."""

    node: str
    milli: int
    """Of its own pods, that last one included, and of the other's that its watch had shown."""
    others: int


def what_was_shown(done: list[Bind], created: dict[str, int], node: str) -> Shown:
    """Whichever of its pods Moorage placed last, it had placed the others before, and so had been shown the
    creation of every one of them."""
    own = [bind for bind in done if bind.node == node and bind.user == ACCOUNT]
    seen = max((created[bind.pod] for bind in own), default=0)
    others = [b for b in done if b.node == node and b.user != ACCOUNT and b.version < seen]
    return Shown(node, sum(bind.milli for bind in (*own, *others)), len(others))


def unexcused(done: list[Bind], user: str) -> list[Bind]:
    """Binds of one scheduler that did not fit beside its own earlier ones and what was answered to the other
    so long ago that its watch must have delivered it."""
    found = []
    for bind in done:
        if bind.user != user:
            continue
        known = sum(
            other.milli
            for other in done
            if other.node == bind.node
            and other.pod != bind.pod
            and (other.sent < bind.sent if other.user == user else other.done + PATIENCE < bind.sent)
        )
        if known + bind.milli > CPU:
            found.append(bind)
    return found


def overcommitted(done: list[Bind]) -> list[str]:
    used: dict[str, int] = defaultdict(int)
    for bind in done:
        used[bind.node] += bind.milli
    return sorted(node for node, milli in used.items() if milli > CPU)


def test_a_bind_of_another_scheduler_that_overcommits_is_reported(world: World, plane: ControlPlane) -> None:
    """Found when the watch shows it: a metric, and an event on the pod that was one too many."""
    world.nodes("n1", cpu="1")
    process = world.moorage()
    world.pod("ours", cpu="800m")
    world.wait_bound("ours")
    world.api.create(objects.pod("theirs", scheduler="somebody-else", cpu="800m", nodeName="n1"))
    events = eventually(lambda: world.events_of("theirs", "NodeOvercommitted"), 30, "an event tells it")
    assert "cpu 1600 of 1000" in events[0]["note"]
    assert process.metric("moorage_overcommits_total", scraper(plane), resource="cpu") == 1


def scraper(plane: ControlPlane) -> str:
    """A token that may read metrics, as Prometheus would have one."""
    api, name = "rbac.authorization.k8s.io", "scraper"
    role = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    for obj in (account, role, binding):
        plane.api.apply(obj)
    return plane.token(name, "default")
