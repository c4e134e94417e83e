"""The test kit does not hang: a hook that spins and pods that go round in circles fail the test, with the
plugin's name. (docs/troubleshooting.md: Plugins)"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import ClassVar

import pytest

from moorage.framework import (
    ActionType,
    ClusterEvent,
    EventResource,
    FilterPlugin,
    PermitPlugin,
    PreBindPlugin,
    QueueingHint,
    Registration,
    Status,
)
from moorage.testing import Cluster, make_node, make_pod, make_pods
from tests.scheduler.kit import config


class Spins(FilterPlugin):
    name = "Spins"

    def filter(self, state, pod, node):
        while True:
            pass


class SpinsInVain(Spins):
    """Takes what is raised in it for a failure of its own."""

    def filter(self, state, pod, node):
        while True:
            try:
                time.sleep(10)
            except Exception:
                continue


class SpinsWhileBinding(PreBindPlugin):
    name = "Spins"

    async def pre_bind(self, state, pod, node_name):
        await self.handle.clock.sleep(1)
        time.sleep(60)


class SpinsInCallback(PermitPlugin):
    name = "Spins"

    def permit(self, state, pod, node_name):
        self.handle.clock.call_later(1, self.spin)
        return Status.wait(timeout=10)

    def spin(self):
        time.sleep(60)


@pytest.mark.parametrize(
    ("plugin", "hook"),
    [(Spins, "filter"), (SpinsInVain, "filter"), (SpinsWhileBinding, "pre_bind"), (SpinsInCallback, "spin")],
    ids=["cycle", "catching", "binding", "timer"],
)
def test_item_2_a_hook_that_does_not_return_fails_the_test_with_its_plugin_and_name(plugin, hook):
    handler = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    said = rf"plugin 'Spins': {hook} has not returned after 0\.3 s .*seed 0"
    with Cluster(config=config("Spins"), plugins=[plugin], hook_limit=0.3) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        with pytest.raises(AssertionError, match=said):
            cluster.settle(30)
    assert time.monotonic() - began < 5
    assert (signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM)) == ((0.0, 0.0), handler)


def test_item_2_many_hooks_that_return_may_take_longer_than_the_limit_together():
    class Slow(FilterPlugin):
        name = "Slow"

        def filter(self, state, pod, node):
            time.sleep(0.1)

    with Cluster(config=config("Slow"), plugins=[Slow], hook_limit=0.5) as cluster:
        cluster.add(make_node("a"))
        for number in range(8):
            cluster.add(make_pod(f"p{number}"))
            cluster.settle(3)
        assert len(cluster.bound()) == 8


def test_item_2_the_timer_of_another_is_not_touched():
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with Cluster(config=config(), hook_limit=0.1) as cluster:

            async def sleeps() -> None:
                time.sleep(0.4)
                await asyncio.sleep(0)

            cluster.run(sleeps())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rang == [signal.SIGALRM]


class Activates(FilterPlugin):
    """Has each pod tried again as soon as it has refused it."""

    name = "Activates"

    def filter(self, state, pod, node):
        self.again(pod)
        return Status.unschedulable("not yet")

    def again(self, pod):
        self.handle.activate([pod])

    def events_to_register(self):
        return [Registration(ClusterEvent(EventResource("Mine"), ActionType.UPDATE))]


class Wakes(Activates):
    name = "Wakes"

    def again(self, pod):
        self.handle.wake(EventResource("Mine"))


@pytest.mark.parametrize(("plugin", "cause"), [(Activates, "ForceActivate"), (Wakes, "MineUpdate")])
@pytest.mark.parametrize("pods", [1, 5])
def test_item_2_a_pod_that_is_tried_in_circles_fails_the_test_with_the_pod_and_who_woke_it(plugin, cause, pods):
    said = (
        rf"pod default/p-\d is tried in circles: \d+ attempts at virtual second \S+, each after {cause} "
        rf"\(plugin '{plugin.name}'\); the last one said: 0/1 nodes are available: 1 not yet\."
    )
    began = time.monotonic()
    with Cluster(config=config(plugin.name), plugins=[plugin]) as cluster:
        cluster.add(make_node("a"), make_pods(pods, "p"))
        with pytest.raises(AssertionError, match=said):
            cluster.settle(30)
    assert time.monotonic() - began < 20


def test_item_2_many_pods_at_one_instant_are_no_circle():
    with Cluster() as cluster:
        cluster.add(make_node("a", cpu="1000", pods=1000), make_pods(400))
        cluster.settle(10)
        assert len(cluster.bound()) == 400


def test_item_2_a_plugin_that_wakes_from_its_own_hint_leaves_the_loop_its_turns():
    class Echo(FilterPlugin):
        name = "Echo"
        asked = 0
        turns: ClassVar[list[int]] = []

        def filter(self, state, pod, node):
            self.take_turns()
            self.handle.wake(EventResource("Echo"))
            return Status.unschedulable("no")

        def take_turns(self):
            self.turns.append(self.asked)
            if self.asked < 1000:
                asyncio.get_running_loop().call_soon(self.take_turns)

        def events_to_register(self):
            return [Registration(ClusterEvent(EventResource("Echo"), ActionType.UPDATE), self.hint)]

        def hint(self, pod, old, new):
            Echo.asked += 1
            if self.asked < 1000:
                self.handle.wake(EventResource("Echo"))
            return QueueingHint.SKIP

    with Cluster(config=config("Echo"), plugins=[Echo]) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
    assert Echo.asked == 1000
    assert len(set(Echo.turns)) > 100


def test_a_scheduling_loop_that_a_plugin_ends_fails_the_test(moorage_cluster):
    class Ends(FilterPlugin):
        name = "ends"

        def filter(self, state, pod, node):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    cluster = moorage_cluster(plugins=[Ends], config=config("ends"))
    cluster.add(make_node("a"), make_pod("p"))
    with pytest.raises(AssertionError, match="the task engine of the scheduler was cancelled"):
        cluster.settle()
