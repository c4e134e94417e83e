"""Another configuration for a scheduler that runs: what becomes of pods, of plugins, and of their work."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any, ClassVar

import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import CONFIG_MAPS
from moorage.framework import (
    Access,
    FilterPlugin,
    PermitPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
    VectorScorePlugin,
)
from moorage.store import faults, refusals
from moorage.store.faults import Fault
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import assumed, config, notes, place, the_pod, where
from tests.scheduler.test_extender_port import PLAIN, Fake, cluster_of

DEFAULT = "default-scheduler"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}


class Refuses(FilterPlugin):
    name = "refuses"

    def filter(self, state, pod, node):
        return Status.unschedulable("not yet")

    def events_to_register(self):
        return []


class Allows(FilterPlugin):
    """A newer version of the plugin."""

    name = "refuses"

    def filter(self, state, pod, node):
        return None


class Gate(PreEnqueuePlugin):
    name = "gate"

    def pre_enqueue(self, pod):
        return Status.unschedulable("the gate is closed")


class Holds(ReservePlugin, PermitPlugin):
    """Keeps its pods waiting; writes down what it is asked."""

    name = "holds"
    log: ClassVar[list[str]]
    version: ClassVar[int]

    def reserve(self, state, pod, node_name):
        self.log.append(f"{self.version} reserve {pod.name}")

    def unreserve(self, state, pod, node_name):
        self.log.append(f"{self.version} unreserve {pod.name}")

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=600.0)


def holds(version: int, log: list[str]) -> type[Holds]:
    return type("Holds", (Holds,), {"version": version, "log": log})


def pods(*names: str, **options: Any) -> list[Any]:
    return [make_pod(name, **options) for name in names]


# Pods


def test_unschedulable_pods_are_tried_again_by_the_new_plugins_after_their_backoff():
    with Cluster(config=config("refuses"), plugins=[Refuses], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(60)
        assert place(cluster, "p") == "unschedulable"
        cluster.reload(config("refuses"), plugins=[Allows])
        cluster.settle(0.1)
        assert cluster.node_of("p") == "a"
        assert cluster.record("p").woken_by == "ConfigurationReloaded"
        cluster.validate()


@pytest.mark.parametrize("waits", [True, False], ids=["in the active queue", "in backoff"])
def test_a_new_gate_holds_pods_that_waited_for_their_turn(waits):
    with Cluster(config=config("refuses"), plugins=[Refuses], flush_after=None, start=False) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.run(cluster.scheduler.follow())
        if not waits:
            cluster.run(cluster.scheduler.lead())
            cluster.settle(0.1)
            cluster.scheduler.engine.services.activate([the_pod(cluster, "p")], "")
        cluster.reload(config("gate"), plugins=[Gate])
        cluster.settle(30)
        assert where(cluster, "p").place == "gated"
        assert "the gate is closed" in where(cluster, "p").why
        cluster.validate()


def test_a_gate_that_is_gone_lets_its_pods_through():
    with Cluster(config=config("gate"), plugins=[Gate], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        cluster.reload(config())
        cluster.settle(0.1)
        assert cluster.node_of("p") == "a"


class Breaks(FilterPlugin):
    name = "breaks"

    def filter(self, state, pod, node):
        raise LookupError("no table")


def test_backoff_is_counted_by_the_new_configuration():
    with Cluster(config=config("breaks"), plugins=[Breaks], flush_after=None) as cluster:
        head = "podInitialBackoffSeconds: 100\npodMaxBackoffSeconds: 200"
        cluster.reload(config("breaks", head=head), plugins=[Breaks])
        cluster.add(make_node("a"))
        cluster.settle()
        cluster.add(make_pod("p"))
        cluster.settle()
        assert 99 < (where(cluster, "p").until or 0) - cluster.clock.now() < 101


def test_a_pod_that_waits_in_permit_stays_held_and_the_new_instance_lets_it_go():
    log: list[str] = []
    with Cluster(config=config("holds"), plugins=[holds(1, log)]) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        cluster.reload(config("holds"), plugins=[holds(2, log)])
        cluster.settle()
        assert assumed(cluster) == ["default/p"]
        for held in cluster.scheduler.engine.services.waiting:
            held.allow("holds")
        cluster.settle()
        assert cluster.node_of("p") == "a"
        assert log == ["1 reserve p"]


def test_a_pod_that_fails_after_a_reload_is_given_back_by_the_plugins_that_placed_it():
    log: list[str] = []
    with Cluster(config=config("holds"), plugins=[holds(1, log)]) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        cluster.reload(config("holds"), plugins=[holds(2, log)])
        for held in cluster.scheduler.engine.services.waiting:
            held.reject("holds", "no")
        cluster.settle(30)
        assert log == ["1 reserve p", "1 unreserve p", "2 reserve p"]
        cluster.validate()


# Profiles


def test_pods_of_a_new_profile_are_scheduled():
    with Cluster(config=config()) as cluster:
        cluster.add(make_node("a"), pods("p", "q", scheduler_name="second"), make_pod("r"))
        cluster.settle()
        assert cluster.bound() == {"default/r": "a"}
        cluster.reload(config(profiles=[DEFAULT, "second"]))
        cluster.settle()
        assert cluster.pending() == []


def test_pods_of_a_profile_that_is_gone_stay_pending_and_say_so():
    with Cluster(config=config(profiles=[DEFAULT, "second"])) as cluster:
        cluster.add(make_pod("p", scheduler_name="second"))
        cluster.settle()
        cluster.reload(config())
        cluster.settle()
        assert 'profile "second" is no longer in the configuration' in notes(cluster, "p")[-1]
        cluster.add(make_node("a"), make_pod("late", scheduler_name="second"))
        cluster.settle(60)
        assert cluster.bound() == {}
        assert place(cluster, "p") == ""
        cluster.reload(config(profiles=[DEFAULT, "second"]))
        cluster.settle()
        assert cluster.pending() == []
        cluster.validate()


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "rejected"])
def test_a_pod_under_way_when_its_profile_goes_gives_its_node_back(deleted):
    log: list[str] = []
    first = config("holds", profiles=[DEFAULT, "second"])
    with Cluster(config=first, plugins=[holds(1, log)]) as cluster:
        cluster.add(make_node("a"), make_pod("p", scheduler_name="second"))
        cluster.settle()
        cluster.reload(config())
        cluster.settle()
        assert assumed(cluster) == ["default/p"]
        if deleted:
            cluster.delete(the_pod(cluster, "p"))
        else:
            next(iter(cluster.scheduler.engine.services.waiting)).reject("holds", "no")
        cluster.settle()
        assert assumed(cluster) == []
        assert log == ["1 reserve p", "1 unreserve p"]
        assert deleted or 'profile "second" is no longer' in notes(cluster, "p")[-1]
        cluster.validate()


# What plugins have begun


class Busy(ScorePlugin):
    """Registers whatever a Handle offers."""

    name = "busy"
    needs = (Access(CONFIG_MAPS),)
    log: ClassVar[list[str]]

    def __init__(self, args, handle):
        self.handle = handle
        self.nodes_by_zone = handle.node_index("zone", lambda node: [(node.labels.get("zone"), 1)])
        self.pods_by_app = handle.pod_index("app", lambda pod: (pod.labels.get("app", ""),))
        self.maps = handle.object_index("kind", CONFIG_MAPS, lambda found: ("all",))
        handle.on_change(CONFIG_MAPS, lambda old, new: self.log.append("changed"))
        handle.shared("count", self.make)

    def make(self):
        self.log.append("made")
        return []

    def score(self, state, pod, node):
        return 1

    async def run(self):
        self.log.append("run")
        try:
            await asyncio.Event().wait()
        finally:
            self.log.append("stopped")


def busy(log: list[str]) -> type[Busy]:
    return type("Busy", (Busy,), {"log": log})


def registered(cluster: Cluster) -> tuple[int, ...]:
    """How much the state holds for plugins."""
    engine = cluster.scheduler.engine
    observers = engine.cache.table.observers
    keys = sum(len(entry.index_keys) for entry in engine.cache.pods())
    watchers = len(engine.stores[CONFIG_MAPS].watchers)
    return len(observers.all), len(observers.of_nodes), watchers, keys, len(engine.tasks)


def test_run_is_exchanged_and_shared_state_survives():
    log: list[str] = []
    with Cluster(config=config("busy"), plugins=[busy(log)]) as cluster:
        cluster.settle()
        cluster.reload(config("busy"), plugins=[busy(log)])
        cluster.settle()
        assert log == ["made", "run", "stopped", "run"]


def test_a_standby_exchanges_its_plugins_without_running_them():
    log: list[str] = []
    with Cluster(config=config("busy"), plugins=[busy(log)], start=False) as cluster:
        cluster.run(cluster.scheduler.follow())
        cluster.reload(config("busy"), plugins=[busy(log)])
        cluster.settle()
        assert log == ["made"]


def test_the_plugins_of_earlier_generations_leave_nothing_behind():
    log: list[str] = []
    with Cluster(config=config("busy"), plugins=[busy(log)]) as cluster:
        cluster.add(make_node("a"), pods("p", "q", labels={"app": "x"}))
        cluster.settle(5)
        before = registered(cluster)
        known = [weakref.ref(cluster.scheduler.engine.profiles[DEFAULT])]
        for _ in range(5):
            cluster.reload(config("busy"), plugins=[busy(log)])
            known.append(weakref.ref(cluster.scheduler.engine.profiles[DEFAULT]))
            cluster.settle()
        assert registered(cluster) == before
        cluster.add(pods("r", labels={"app": "x"}))
        cluster.settle(5)
        plugin: Any = cluster.scheduler.engine.profiles[DEFAULT].plugins["busy"]
        assert sum(plugin.pods_by_app.rows("x").values()) == 3, "the new indexes are kept up to date"
        gc.collect()
        assert [each() is not None for each in known] == [False] * 5 + [True]


def test_tasks_that_a_plugin_has_spawned_may_finish():
    log: list[str] = []

    class Spawns(ScorePlugin):
        name = "spawns"

        def __init__(self, args, handle):
            self.handle = handle

        def score(self, state, pod, node):
            return 1

        async def run(self):
            self.handle.spawn(self.work(10))
            self.handle.spawn(self.work(1000))

        async def work(self, seconds):
            await self.handle.clock.sleep(seconds)
            log.append(f"done after {seconds}")

    with Cluster(config=config("spawns"), plugins=[Spawns]) as cluster:
        cluster.reload(config())
        cluster.settle(2000)
    assert log == ["done after 10"]


async def spawned(plugin: Busy) -> None:
    """Begin work that never ends."""
    plugin.handle.spawn(asyncio.Event().wait())


def test_a_plugin_that_has_not_changed_stays_with_everything_that_it_has_begun():
    log: list[str] = []
    same = busy(log)
    with Cluster(config=config("busy"), plugins=[same]) as cluster:
        cluster.add(make_node("a"), pods("p", labels={"app": "x"}))
        cluster.settle(5)
        before = registered(cluster)
        plugin: Any = cluster.scheduler.engine.profiles[DEFAULT].plugins["busy"]
        cluster.run(spawned(plugin))
        for _ in range(3):
            cluster.reload(config("busy", "gate"), plugins=[same, Gate])
            cluster.reload(config("busy"), plugins=[same])
            cluster.settle(200)
        assert id(cluster.scheduler.engine.profiles[DEFAULT].plugins["busy"]) == id(plugin)
        assert log == ["made", "run"], "run has not been interrupted"
        assert registered(cluster) == (*before[:-1], before[-1] + 1), "the task that it has spawned goes on"
        cluster.add(make_pod("q", labels={"app": "x"}), CONFIG_MAP)
        cluster.settle(5)
        assert sum(plugin.pods_by_app.rows("x").values()) == 2
        assert len(list(plugin.maps.at("all"))) == 1
        assert log == ["made", "run", "changed"]
        assert plugin.handle.dry_run() is not None
        plugin.handle.activate([])
        cluster.reload(config())
        cluster.settle(200)
        assert log == ["made", "run", "changed", "stopped"]
        _, of_nodes, watchers, keys, _ = registered(cluster)
        assert (of_nodes, watchers, keys) == (before[1] - 1, before[2] - 2, 0)
        cluster.validate()


class Configured(ScorePlugin):
    name = "configured"
    made: ClassVar[list[Any]] = []

    def __init__(self, args, handle):
        self.made.append(dict(args))
        args.clear()

    def score(self, state, pod, node):
        return 1


def test_a_plugin_with_other_arguments_is_built_again():
    Configured.made.clear()
    texts = [
        config("configured", extra=f"pluginConfig: [{{name: configured, args: {{level: {level}}}}}]")
        for level in (1, 1, 2)
    ]
    with Cluster(config=texts[0], plugins=[Configured]) as cluster:
        for text in texts:
            cluster.reload(text, plugins=[Configured])
        assert Configured.made == [{"level": 1}, {"level": 2}]


def test_what_a_failed_reload_has_registered_is_gone_and_what_stays_is_not_touched():
    log: list[str] = []
    same = busy(log)

    class Fails(ScorePlugin):
        name = "fails"

        def __init__(self, args, handle):
            handle.node_index("other", lambda node: [("all", 1)])
            handle.on_change(CONFIG_MAPS, lambda old, new: log.append("never"))
            handle.spawn(asyncio.Event().wait())
            raise RuntimeError("no")

        needs = (Access(CONFIG_MAPS),)

        def score(self, state, pod, node):
            return 1

    with Cluster(config=config("busy"), plugins=[same]) as cluster:
        cluster.settle()
        before = registered(cluster)
        with pytest.raises(MoorageError, match='initializing plugin "fails": RuntimeError: no'):
            cluster.reload(config("busy", "fails"), plugins=[same, Fails])
        cluster.add(CONFIG_MAP)
        cluster.settle(5)
        assert registered(cluster) == before
        assert log == ["made", "run", "changed"]


def test_a_column_of_the_same_key_is_computed_by_the_new_code():
    def scoring(preferred: str) -> type[VectorScorePlugin]:
        class Column(VectorScorePlugin):
            name = "column"

            def score_nodes(self, state, pod, nodes):
                return nodes.node_column("mine", lambda nodes: [100 * (name == preferred) for name in nodes.names])

        return Column

    with Cluster(config=config("column"), plugins=[scoring("a")]) as cluster:
        cluster.add(make_node("a"), make_node("b"), make_pod("p"))
        cluster.settle(5)
        cluster.reload(config("column"), plugins=[scoring("b")])
        cluster.add(make_pod("q"))
        cluster.settle()
        assert cluster.bound() == {"default/p": "a", "default/q": "b"}


def test_extenders_are_exchanged_and_the_old_ones_closed():
    old = Fake("old", filter=lambda names: [])
    with cluster_of(old) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(30)
        assert cluster.pending() == ["default/p"]
        cluster.reload(PLAIN)
        cluster.settle(30)
        assert cluster.node_of("p") == "a"
        assert old.closed


# What cannot be used


class Broken(FilterPlugin):
    name = "broken"

    def __init__(self, args, handle):
        handle.pod_index("app", lambda pod: ())
        raise LookupError("no table")

    def filter(self, state, pod, node):
        return None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("profiles: [", "not valid YAML", id="no YAML"),
        pytest.param(config("unknown"), "unknown", id="an unknown plugin"),
        pytest.param(config("broken"), 'plugin "broken": LookupError: no table', id="constructor"),
    ],
)
def test_a_configuration_that_cannot_be_used_changes_nothing(text, says):
    with Cluster(config=config()) as cluster:
        before, profiles = registered(cluster), dict(cluster.scheduler.engine.profiles)
        with pytest.raises(MoorageError, match=says):
            cluster.reload(text, plugins=[Broken])
        assert cluster.scheduler.engine.profiles == profiles
        assert registered(cluster) == before
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"


def test_the_objects_of_a_newly_needed_kind_are_there_before_the_swap():
    seen: list[int] = []

    class Reads(FilterPlugin):
        name = "reads"
        needs = (Access(CONFIG_MAPS),)

        def __init__(self, args, handle):
            self.handle = handle

        def filter(self, state, pod, node):
            seen.append(len(list(self.handle.lister(CONFIG_MAPS).list())))

    with Cluster(config=config()) as cluster:
        cluster.add(CONFIG_MAP, make_node("a"))
        cluster.reload(config("reads"), plugins=[Reads])
        cluster.add(make_pod("p"))
        cluster.settle()
        assert seen == [1]


def test_a_kind_that_may_not_be_read_fails_the_reload_and_not_the_scheduler():
    with Cluster(config=config()) as cluster:
        forbidden = faults.fail(refusals.failure(403, "Forbidden", "configmaps is forbidden"))
        cluster.faults.add(Fault(forbidden, resource=CONFIG_MAPS, times=None))
        with pytest.raises(MoorageError, match=r"configmaps may not be listed.*grant list and watch"):
            cluster.reload(config("busy"), plugins=[busy([])])
        assert CONFIG_MAPS not in cluster.scheduler.informers.informers
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"
