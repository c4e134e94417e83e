"""Waiting pods, PreBind groups, and the background work of plugins."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

import pytest

from moorage.framework import PreBindPlugin, PreBindPreFlight, Status
from moorage.runtime.binding import pre_flight
from moorage.runtime.services import WaitingPods, permit_timeout
from moorage.telemetry.logs import VALUES
from moorage.testing import Cluster, VirtualClock, VirtualLoop, make_node, make_pod
from tests.runtime.kit import cluster_with, handle_of
from tests.scheduler.kit import built, config

POD = make_pod("p", uid="u")


def decided(*acts: Any, timeouts: dict[str, float] | None = None, wait: float = 0.0) -> Any:
    """The outcome of a held pod after these acts."""
    loop = VirtualLoop(0)

    async def story() -> Any:
        pods = WaitingPods(VirtualClock(loop))
        held = pods.hold(POD, "a", {"one": 10.0, "two": 20.0} if timeouts is None else timeouts)
        assert list(pods) == [held]
        assert len(pods) == 1
        assert pods.get("u") is held
        for act in acts:
            act(held, pods)
        if wait:
            await asyncio.sleep(wait)
        outcome = await held.outcome()
        pods.release("u")
        assert (len(pods), pods.get("u")) == (0, None)
        return outcome

    try:
        return loop.run_until_complete(story())
    finally:
        loop.close()


def summary(outcome: Any) -> tuple[str, str, str]:
    return (outcome.code.label, outcome.plugin, outcome.message)


OUTCOMES = [
    pytest.param([lambda h, _: (h.allow("one"), h.allow("two"))], ("Success", "", ""), id="allowed by all"),
    pytest.param(
        [lambda h, _: (h.reject("two", "no"), h.allow("one"), h.allow("two"))],
        ("Unschedulable", "two", "no"),
        id="rejected first",
    ),
    pytest.param(
        [lambda h, _: (h.allow("one"), h.allow("two"), h.reject("one", "late"))], ("Success", "", ""), id="too late"
    ),
    pytest.param(
        [lambda h, _: h.preempt("P", "for another")],
        ("Error", "P", "waiting on permit for pod: for another"),
        id="preempted",
    ),
    pytest.param([lambda _, pods: pods.reject("u")], ("Unschedulable", "", "removed"), id="removed"),
    pytest.param(
        [], ("Unschedulable", "one", "rejected due to timeout after waiting 10s at plugin one"), id="the first timer"
    ),
    pytest.param(
        [lambda h, _: h.allow("one")],
        ("Unschedulable", "two", "rejected due to timeout after waiting 20s at plugin two"),
        id="the timer of whom is left",
    ),
    pytest.param(
        [lambda h, _: (h.allow("stranger"), h.allow("one"), h.allow("one"))],
        ("Unschedulable", "two", "rejected due to timeout after waiting 20s at plugin two"),
        id="strangers and repetition do not count",
    ),
]


@pytest.mark.parametrize(("acts", "expected"), OUTCOMES)
def test_the_first_decision_wins(acts, expected):
    assert summary(decided(*acts)) == expected


def test_pending_plugins_are_those_that_have_not_allowed():
    seen: list[list[str]] = []
    decided(
        lambda h, _: h.allow("one"), lambda h, _: seen.append(list(h.pending_plugins())), lambda h, _: h.allow("two")
    )
    assert seen == [["two"]]


def test_rejecting_says_whether_the_pod_waits():
    seen: list[bool] = []
    decided(lambda _, pods: seen.append(pods.reject("other")), lambda _, pods: seen.append(pods.reject("u")))
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 900.0), (5.0, 5.0), (901.0, 900.0), (0.0, 0.0), (-1.0, 0.0), (float("inf"), 900.0)]
)
def test_waits_are_cut_to_fifteen_minutes(asked, given):
    assert permit_timeout(asked) == given


# PreBind


def pre_binder(mine: str, answer: Any) -> type[PreBindPlugin]:
    class Binder(PreBindPlugin):
        name = mine

        def pre_bind_pre_flight(self, state, pod, node_name):
            return answer

        async def pre_bind(self, state, pod, node_name):
            return None

    return Binder


TOGETHER, ALONE, SKIP = PreBindPreFlight(True), PreBindPreFlight(False), Status.skip()
GROUPS = [
    pytest.param([TOGETHER, TOGETHER, TOGETHER], ["abc"], id="all together"),
    pytest.param([ALONE, ALONE], ["a", "b"], id="one after the other"),
    pytest.param([TOGETHER, ALONE, TOGETHER], ["a", "b", "c"], id="one alone separates"),
    pytest.param([TOGETHER, SKIP, TOGETHER], ["a", "c"], id="a skipped one separates too"),
    pytest.param([TOGETHER, TOGETHER, None, TOGETHER], ["ab", "c", "d"], id="no answer is alone"),
    pytest.param([SKIP, SKIP], [], id="nothing to do"),
    pytest.param([SKIP, TOGETHER, TOGETHER], ["bc"], id="skipped before"),
]


@pytest.mark.parametrize(("answers", "expected"), GROUPS)
def test_neighbours_that_allow_it_run_together(answers, expected):
    plugins = [pre_binder(name, answer) for name, answer in zip("abcd", answers, strict=False)]
    scheduler = built(config(*(plugin.name for plugin in plugins)), plugins)
    state: Any = None
    flight, status = pre_flight(scheduler.engine.profiles["default-scheduler"], state, POD, "a")
    assert status.is_success
    assert ["".join(plugin.name for plugin in group) for group in flight.groups] == expected


def test_groups_run_one_after_the_other_and_their_members_at_once():
    times: dict[str, tuple[float, float]] = {}

    def timed(mine: str, answer: Any) -> type[PreBindPlugin]:
        class Timed(pre_binder(mine, answer)):  # type: ignore[misc]
            async def pre_bind(self, state, pod, node_name):
                began = self.handle.clock.now()
                await self.handle.clock.sleep(1)
                times[mine] = (began, self.handle.clock.now())

        return Timed

    plugins = [timed("a", TOGETHER), timed("b", TOGETHER), timed("c", ALONE)]
    with cluster_with(*plugins) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(5)
        assert cluster.node_of("p") == "a"
    assert times == {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (1.0, 2.0)}


# Background work


class Worker(PreBindPlugin):
    name = "worker"
    log: ClassVar[list[str]]

    async def pre_bind(self, state, pod, node_name):
        return None

    async def run(self):
        self.log.append(f"started with {len(self.handle.nodes)} nodes")
        self.handle.spawn(self.helper(), "helper")
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("run ended")

    async def helper(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("helper ended")


def worker(**members: Any) -> type[Worker]:
    return type("Worker", (Worker,), {"log": [], **members})


def test_run_starts_after_sync_and_is_cancelled_at_stop():
    plugin = worker()
    with cluster_with(plugin, start=False) as cluster:
        cluster.add(make_node("a"), make_node("b"))
        assert plugin.log == []
        cluster.start()
        cluster.settle()
        assert plugin.log == ["started with 2 nodes"]
        cluster.close()
        assert sorted(plugin.log[1:]) == ["helper ended", "run ended"]


def test_spawned_work_that_fails_is_logged_with_the_plugins_name(caplog):
    async def broken() -> None:
        raise LookupError("gone")

    async def spawn(cluster: Cluster) -> None:
        handle_of(cluster, "worker").spawn(broken(), "poll")

    options = {"allow_background_failures": True}
    with caplog.at_level(logging.ERROR), cluster_with(worker(), **options) as cluster:
        cluster.run(spawn(cluster))
        cluster.settle()
    assert any("worker:poll" in str(record.__dict__) for record in caplog.records)


def test_item_2_a_task_that_goes_on_although_it_is_cancelled_is_named_with_its_plugin_and_place(caplog):
    async def stubborn(self: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(5)

    with caplog.at_level(logging.WARNING), cluster_with(worker(run=stubborn)) as cluster:
        cluster.settle()
    (said,) = [record.__dict__[VALUES] for record in caplog.records if "Waiting for a cancelled task" in record.msg]
    assert said["task"] == "worker:run"
    assert said["at"].partition(":")[0] == __file__
