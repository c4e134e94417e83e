"""Plugins that raise what ends tasks and processes, or cancel the task that calls them: no pod is lost."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from moorage.api.resources import NODES, PODS
from moorage.framework import (
    Access,
    ActionType,
    ClusterEvent,
    PreBindPreFlight,
    Registration,
    ReusablePlugin,
    SortKeyPlugin,
    Status,
)
from moorage.framework.events import NODE
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config, where
from tests.scheduler.recorder import ONLY_WITNESS, witness

ENDS = [asyncio.CancelledError, SystemExit, GeneratorExit]
TWO = (make_node("a"), make_node("b"))


def cancel_own_task(node: str) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def cancelling(point: str, name: str = "witness", **more: Any) -> Any:
    """A plugin whose asynchronous hook cancels its own task in its first call, and then waits."""
    base = witness({**more}, name)
    hook = {"PreBind": "pre_bind", "Bind": "bind", "PostBind": "post_bind"}[point]
    called: list[str] = []

    async def cancels(self: Any, state: Any, pod: Any, node_name: str) -> Any:
        called.append(pod.name)
        if len(called) == 1:
            cancel_own_task(node_name)
            await asyncio.sleep(0)
        return Status.skip() if point == "Bind" else None

    return type("Cancels", (base,), {hook: cancels})


@pytest.mark.parametrize("parallel", [False, True], ids=["alone", "in parallel"])
def test_a_pre_bind_that_cancels_its_own_task_is_named_and_the_pod_is_tried_again(parallel):
    flight: dict[str, Any] = {"PreBindPreFlight": PreBindPreFlight(parallel)}
    plugins = [cancelling("PreBind", "witness", **flight), witness(flight, "other")]
    with Cluster(config=config("witness", "other"), plugins=plugins, flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert cluster.node_of("p") == ""
        note = cluster.events("p")[0].note
        assert note.startswith('running PreBind plugin "witness": pod "default/p", node "a": CancelledError: ')
        cluster.settle(20)
        assert cluster.pending() == []
        cluster.validate()


def test_a_bind_that_cancels_its_own_task_is_settled_by_the_api_server():
    with Cluster(config=ONLY_WITNESS, plugins=[cancelling("Bind")], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert "a Bind plugin cancelled the task that called it" in cluster.events("p")[0].note
        cluster.settle(20)
        assert cluster.pending() == []
        cluster.validate()


def test_a_post_bind_that_cancels_its_own_task_changes_nothing(caplog):
    with Cluster(config=ONLY_WITNESS, plugins=[cancelling("PostBind")], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"), make_pod("q"))
        cluster.settle()
        assert cluster.pending() == []
        assert [event.reason for event in cluster.events("p")] == ["Scheduled"]
        assert "PostBind was cancelled by one of its plugins" in caplog.text


def test_a_pre_flight_that_cancels_the_binding_cycle_requeues_the_pod():
    plugin = witness({"PreBindPreFlight": cancel_own_task})
    with Cluster(config=ONLY_WITNESS, plugins=[plugin], flush_after=None) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.3)
        assert "binding cycle: CancelledError" in cluster.events("p")[0].note
        plugin.answers.clear()
        cluster.settle(20)
        assert cluster.pending() == []
        cluster.validate()


@pytest.mark.parametrize("error", ENDS)
def test_hooks_of_the_queue_that_raise_lose_no_pod(error):
    class Sort(SortKeyPlugin):
        name = "sort"

        def key(self, pod):
            if pod.pod.name == "p":
                raise error("sort")
            return pod.timestamp

    class Gate(witness({})):  # type: ignore[misc]
        name = "gate"

        def pre_enqueue(self, pod):
            if pod.name == "gated":
                raise error("gate")

    text = config("gate").replace("PrioritySort", "sort")
    with Cluster(config=text, plugins=[Sort, Gate], flush_after=None) as cluster:
        cluster.add(*TWO, *(make_pod(name) for name in ("x", "p", "gated")))
        cluster.settle()
        assert cluster.pending() == ["default/gated"]
        assert error.__name__ in where(cluster, "gated").why
        cluster.validate()


@pytest.mark.parametrize("error", ENDS)
def test_hints_signatures_and_callbacks_that_raise_stop_nothing(error):
    class Mine(ReusablePlugin, witness({"Filter": lambda node: Status.unschedulable("no")})):  # type: ignore[misc]
        name = "mine"
        needs = (Access(NODES), Access(PODS, ("create",), "binding"))

        def __init__(self, args, handle):
            super().__init__(args, handle)
            handle.on_change(NODES, self._changed)

        def _changed(self, old, new):
            raise error("callback")

        def _hint(self, pod, old, new):
            raise error("hint")

        def sign(self, pod):
            raise error("sign")

        def events_to_register(self):
            return [Registration(ClusterEvent(NODE, ActionType.ADD), self._hint)]

    with Cluster(config=config("mine"), plugins=[Mine], flush_after=None, allow_background_failures=True) as cluster:
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(5)
        Mine.answers.clear()
        cluster.add(make_node("c"))
        cluster.settle(20)
        assert cluster.pending() == [], "a hint that raises brings the pod back"
        cluster.validate()


def test_a_keyboard_interrupt_that_no_signal_sent_is_a_failure_of_the_plugin():
    plugin = witness({"PreFilter": KeyboardInterrupt()})
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with Cluster(config=ONLY_WITNESS, plugins=[plugin], flush_after=None) as cluster:
            cluster.add(*TWO, make_pod("p"))
            cluster.settle(0.3)
            assert "KeyboardInterrupt" in cluster.events("p")[0].note
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_during_a_hook_is_no_failure_of_the_plugin():
    plugin = witness({"PreFilter": lambda node: signal.raise_signal(signal.SIGINT)})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        cluster = Cluster(config=ONLY_WITNESS, plugins=[plugin], flush_after=None)
        cluster.add(*TWO, make_pod("p"))
        with pytest.raises(KeyboardInterrupt):
            cluster.settle(0.3)
        plugin.answers.clear()
    finally:
        signal.signal(signal.SIGINT, before)
        cluster.close()
