"""Background work of plugins that fails: `run` is started again, and the test kit does not pass over it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import pytest

from moorage.framework import PostBindPlugin
from moorage.telemetry.logs import VALUES
from moorage.testing import Cluster, make_node, make_pod
from tests.runtime.kit import cluster_with, handle_of
from tests.scheduler.kit import config
from tests.scheduler.test_metrics import Measured

Run = Callable[["Worker"], Coroutine[Any, Any, None]]


class Worker(PostBindPlugin):
    name = "worker"
    starts: ClassVar[list[float]]
    """When `run` was called."""

    def post_bind(self, state, pod, node_name):
        return None


def worker(work: Run) -> type[Worker]:
    async def run(self: Worker) -> None:
        self.starts.append(self.handle.clock.now())
        await work(self)

    return type("Worker", (Worker,), {"run": run, "starts": []})


def pauses(plugin: type[Worker]) -> list[float]:
    """Seconds between the starts of `run`."""
    pairs = zip(plugin.starts, plugin.starts[1:], strict=False)
    return [round(later - earlier, 3) for earlier, later in pairs]


async def fail(plugin: Worker) -> None:
    raise LookupError("no metrics")


async def cancel(plugin: Worker) -> None:
    """Work of the plugin's own is cancelled, not the plugin."""
    raise asyncio.CancelledError


async def ten_minutes_then_fail(plugin: Worker) -> None:
    if len(plugin.starts) == 5:
        await plugin.handle.clock.sleep(600)
    raise LookupError("no metrics")


async def be_done(plugin: Worker) -> None:
    return None


@pytest.mark.parametrize(
    ("work", "seconds", "expected"),
    [
        pytest.param(fail, 1200, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], id="fails"),
        pytest.param(cancel, 5, [1, 2], id="fails by a cancellation of its own"),
        pytest.param(ten_minutes_then_fail, 625, [1, 2, 4, 8, 601, 2, 4], id="fails after it ran for ten minutes"),
        pytest.param(be_done, 1200, [], id="returns, and is finished"),
    ],
)
def test_run_is_started_again_after_failures_with_growing_pauses(work, seconds, expected):
    plugin = worker(work)
    with cluster_with(plugin, allow_background_failures=True) as cluster:
        cluster.add(make_node("a"))
        cluster.settle(seconds)
        assert pauses(plugin) == expected
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a", "the scheduler goes on"
    assert len(plugin.starts) == len(expected) + 1


def test_a_run_that_fails_while_it_is_stopped_is_not_started_again():
    async def fail_at_the_end(plugin: Worker) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await fail(plugin)

    plugin = worker(fail_at_the_end)
    with pytest.raises(AssertionError, match=MESSAGE), cluster_with(plugin) as cluster:
        cluster.settle()
    assert len(plugin.starts) == 1


def test_each_failure_of_run_is_logged_with_its_plugin_and_counted(caplog):
    plugin = worker(fail)
    options: dict[str, Any] = {"config": config("worker"), "plugins": [plugin]}
    with caplog.at_level(logging.ERROR), Measured(**options, allow_background_failures=True) as cluster:
        cluster.settle(4)
        assert cluster.metrics.plugin_run_failures.samples() == {("worker",): 3}
    values = [getattr(record, VALUES) for record in caplog.records]
    assert [(value["plugin"], value["seconds"]) for value in values] == [
        ("worker", 1.0),
        ("worker", 2.0),
        ("worker", 4.0),
    ]


MESSAGE = "background work of 'worker' failed: LookupError: no metrics"


def test_a_failing_run_fails_the_test_at_settle():
    with cluster_with(worker(fail)) as cluster:
        with pytest.raises(AssertionError, match=MESSAGE) as caught:
            cluster.settle()
        assert isinstance(caught.value.__cause__, LookupError)


def test_a_failing_run_fails_the_test_at_its_end():
    with pytest.raises(AssertionError, match=MESSAGE), cluster_with(worker(fail)) as cluster:
        cluster.run(asyncio.sleep(1))


def test_spawned_work_that_fails_fails_the_test_too():
    async def spawn(cluster: Cluster) -> None:
        handle = handle_of(cluster, "worker")
        handle.spawn(fail(None), "poll")  # type: ignore[arg-type]

    with cluster_with(worker(be_done)) as cluster:
        cluster.run(spawn(cluster))
        with pytest.raises(AssertionError, match=MESSAGE):
            cluster.settle()


def test_a_restarted_scheduler_is_watched_too():
    async def fail_the_second_time(plugin: Worker) -> None:
        if len(plugin.starts) == 2:
            await fail(plugin)

    with cluster_with(worker(fail_the_second_time)) as cluster:
        cluster.settle()
        cluster.restart()
        with pytest.raises(AssertionError, match=MESSAGE):
            cluster.settle()
