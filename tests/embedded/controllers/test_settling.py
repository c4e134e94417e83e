"""Whatever users do and whatever goes wrong, the world settles to what was asked for, and then stays still.

Each run is drawn from a seed: actions of users, failures of nodes, faults of the API. The seed is in the
test's name, and in every assertion of the world.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.errors import ApiError
from moorage.embedded.controllers import kinds
from moorage.store import faults as effects
from moorage.store.faults import Effect, Fault
from tests.embedded.controllers.world import World, node, template, workload

Raw = dict[str, Any]
NODES = 4


class User:
    """Does random things, and remembers what should come of them."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.dead: set[str] = set()
        quick = template({"app": "web"}, tolerations=_tolerations())
        world.create(kinds.DEPLOYMENTS, workload("web", replicas=3, template=quick))
        world.create(kinds.STATEFUL_SETS, workload("db", replicas=2))
        world.create(kinds.DAEMON_SETS, workload("agent", replicas=None))
        world.create(kinds.BUDGETS, _budget())
        world.create(kinds.SERVICES, _service())

    def act(self) -> None:
        action: Callable[[], None] = self.rng.choice(
            [self._scale, self._scale, self._update, self._kill_pod, self._kill_pod, self._fail, self._cordon]
        )
        try:
            action()
        except ApiError:
            return  # a race with the controllers; the next action comes anyway
        finally:
            self.world.settle(self.rng.random() * 4)

    def _scale(self) -> None:
        kind, name = self.rng.choice([(kinds.DEPLOYMENTS, "web"), (kinds.STATEFUL_SETS, "db")])
        self.world.patch(kind, name, {"spec": {"replicas": self.rng.randrange(6)}})

    def _update(self) -> None:
        kind, name = self.rng.choice(
            [(kinds.DEPLOYMENTS, "web"), (kinds.STATEFUL_SETS, "db"), (kinds.DAEMON_SETS, "agent")]
        )
        containers = [{"name": "main", "image": f"app:{self.rng.randrange(1, 4)}"}]
        self.world.patch(kind, name, {"spec": {"template": {"spec": {"containers": containers}}}})

    def _kill_pod(self) -> None:
        pods = self.world.all(kinds.PODS)
        if pods:
            grace = self.rng.choice([0, None])
            self.world.delete(kinds.PODS, self.rng.choice(pods)["metadata"]["name"], grace_period=grace)

    def _fail(self) -> None:
        name = f"n{self.rng.randrange(NODES)}"
        assert self.world.kubelets is not None
        if name in self.dead:
            self.dead.discard(name)
            self.world.kubelets.recover(name)
        elif len(self.dead) < 2:
            self.dead.add(name)
            self.world.kubelets.fail(name)

    def _cordon(self) -> None:
        name = f"n{self.rng.randrange(NODES)}"
        self.world.patch(kinds.NODES, name, {"spec": {"unschedulable": self.rng.random() < 0.3}})

    def make_peace(self) -> None:
        """Nothing more goes wrong, and every node is in service."""
        assert self.world.kubelets is not None
        for name in self.dead:
            self.world.kubelets.recover(name)
        for number in range(NODES):
            self.world.patch(kinds.NODES, f"n{number}", {"spec": {"unschedulable": False}})


def _tolerations() -> list[Raw]:
    return [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        for key in ("not-ready", "unreachable")
    ]


def _budget() -> Raw:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def _service() -> Raw:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def check_settled(world: World) -> None:
    web, db = world.get(kinds.DEPLOYMENTS, "web"), world.get(kinds.STATEFUL_SETS, "db")
    agent = world.get(kinds.DAEMON_SETS, "agent")
    for owner, wanted, count in (
        (web, web["spec"]["replicas"], "availableReplicas"),
        (db, db["spec"]["replicas"], "readyReplicas"),
        (agent, NODES, "numberAvailable"),
    ):
        name, image = owner["metadata"]["name"], owner["spec"]["template"]["spec"]["containers"][0]["image"]
        pods = world.all(kinds.PODS, f"app={name}")
        assert len(pods) == wanted, name
        assert all(_is_ready(pod) for pod in pods), name
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} <= {image}, name
        assert owner["status"].get(count, 0) == wanted, name
        assert owner["status"]["observedGeneration"] == owner["metadata"]["generation"], name
    assert sorted(p["spec"]["nodeName"] for p in world.all(kinds.PODS, "app=agent")) == [f"n{i}" for i in range(NODES)]
    budget = world.get(kinds.BUDGETS, "web")["status"]
    assert budget["currentHealthy"] == budget["expectedPods"] == web["spec"]["replicas"]
    addresses = [a["ip"] for s in world.get(kinds.ENDPOINTS, "web")["subsets"] for a in s.get("addresses", ())]
    assert sorted(addresses) == sorted(p["status"]["podIP"] for p in world.all(kinds.PODS, "app=web"))
    assert not any(n["spec"].get("taints") for n in world.all(kinds.NODES) if n.get("spec"))


def _is_ready(pod: Raw) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def check_still(world: World) -> None:
    since = world.clock.now()
    world.settle(60)
    noisy = [c for c in world.writes(since) if c.resource.plural != "nodes"]  # nodes report each five minutes
    assert noisy == []
    assert len(world.writes(since)) <= NODES


@pytest.mark.parametrize("seed", range(6))
def test_the_world_settles_after_random_actions(seed: int):
    with World(nodes=NODES, seed=seed) as world:
        user = User(world, seed)
        for _ in range(25):
            user.act()
        user.make_peace()
        world.settle(180)
        check_settled(world)
        check_still(world)


EFFECTS: list[Effect] = [
    effects.conflict(),
    effects.server_error(),
    effects.not_sent(),
    effects.lost_answer(),
    effects.lost_request(),
    effects.too_many_requests(1),
    effects.slow_answer(2.0),
    effects.delay(1.0),
]


@pytest.mark.parametrize("seed", range(6))
def test_the_world_settles_in_spite_of_faults(seed: int):
    with World(nodes=NODES, seed=seed) as world:
        for effect in EFFECTS:
            for verb in ("create", "replace", "patch", "delete", "get"):
                world.faults.add(Fault(effect, verb=verb, times=None, chance=0.04))
        world.faults.add(Fault(effects.delay_events(0.5), verb="watch", times=None, chance=0.5))
        user = User(world, seed)
        for _ in range(25):
            user.act()
            if user.rng.random() < 0.2:
                world.client.cut_watches(error=effects.gone().error if user.rng.random() < 0.5 else None)
        world.faults.clear()
        user.make_peace()
        world.settle(240)
        check_settled(world)
        check_still(world)


@pytest.mark.parametrize("seed", range(2))
def test_a_restart_in_the_middle_changes_nothing(seed: int):
    with World(nodes=NODES, seed=seed) as world:
        user = User(world, seed)
        for _ in range(12):
            user.act()
            if user.rng.random() < 0.3:
                world.restart_manager()
        user.make_peace()
        world.settle(180)
        check_settled(world)


def test_nothing_is_counted_twice_when_answers_are_lost():
    """A Job whose pods' creations and counts are lost half of the time still ends with the right numbers."""
    quick = template({"app": "sum"}, {"moorage.dev/run-seconds": "1"}, restartPolicy="Never")
    with World(seed=11) as world:
        for verb in ("replace", "patch"):
            world.faults.add(Fault(effects.lost_answer(), verb=verb, times=None, chance=0.4))
        meta = {"name": "sum", "namespace": "default"}
        world.create(kinds.JOBS, {"metadata": meta, "spec": {"template": quick, "completions": 12, "parallelism": 4}})
        world.settle(120)
        world.faults.clear()
        world.settle(60)
        status = world.get(kinds.JOBS, "sum")["status"]
        assert status["succeeded"] == 12
        assert "failed" not in status
        assert status["uncountedTerminatedPods"] == {}


def test_a_new_node_is_used_by_what_waits_for_it():
    with World(nodes=0) as world:
        world.create(kinds.DEPLOYMENTS, workload())
        world.create(kinds.DAEMON_SETS, workload("agent", replicas=None))
        world.settle(10)
        assert len(world.all(kinds.PODS)) == 3
        world.create(kinds.NODES, node("n0"))
        world.settle(10)
        assert all(_is_ready(pod) for pod in world.all(kinds.PODS))
        assert len(world.all(kinds.PODS)) == 4
