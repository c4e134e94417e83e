"""A new version of a known pod: observers are notified of what they read, and of nothing else."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.meta import LabelSelector
from moorage.api.pod import (
    Affinity,
    ContainerStatus,
    Pod,
    PodAffinityTerm,
    PodAntiAffinity,
    PodCondition,
    PodStatus,
    ResourceRequirements,
)
from moorage.api.selectors import selector_from_labels
from moorage.framework.indexes import PodSelector
from moorage.state.cache import CacheOutcome, ClusterCache
from moorage.state.counting import LazyCounting
from moorage.state.indexes import Indexes
from moorage.state.node_table import NodeTable
from tests.state.objects import make_node, make_pod

WEB = PodSelector(None, selector_from_labels({"app": "web"}))
STAYING = PodSelector(None, selector_from_labels({"app": "web"}), terminating=False)
SCHEDULED = PodCondition(type="PodScheduled", status="True")


def pod(node: str = "a", app: str = "web", owner: str = "") -> Pod:
    return make_pod("p", node=node, labels={"app": app, **({"owner": owner} if owner else {})}, cpu="1")


def with_status(pod: Pod, **fields: object) -> Pod:
    return msgspec.structs.replace(pod, status=PodStatus(**fields))  # type: ignore[arg-type]


def with_affinity(pod: Pod) -> Pod:
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector())
    rules = PodAntiAffinity(required_during_scheduling_ignored_during_execution=(term,))
    spec = msgspec.structs.replace(pod.spec, affinity=Affinity(pod_anti_affinity=rules))
    return msgspec.structs.replace(pod, spec=spec)


def terminating(pod: Pod) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(pod, metadata=meta)


class Watched:
    """A cache with all observers, and one that keeps what it is notified of."""

    def __init__(self) -> None:
        table = NodeTable(width=2)
        self.cache = ClusterCache(table)
        self.cache.add_node(make_node("a"))
        counting = LazyCounting(table)
        self.counters, self.terms = counting.pod_counters(), counting.affinity_terms()
        self.owners = Indexes(table.observers).pod_index("owner", lambda pod: pod.labels.get("owner", "").split())
        self.heard: list[str] = []
        table.observers.observe(self)

    def prepare(self, entry: object) -> bool:
        return True

    def pod_added(self, row: int, entry: object) -> None:
        self.heard.append("added")

    def pod_removed(self, row: int, entry: object) -> None:
        self.heard.append("removed")

    def pod_replaced(self, row: int, old: object, new: object) -> None:
        self.heard.append("replaced")

    def counted(self) -> tuple[int, int, int, int]:
        """Pods with app=web, those of them that are not terminating, held terms, pods of the owner x."""
        self.cache.validate()
        web, staying = self.counters.get(WEB).number(0), self.counters.get(STAYING).number(0)
        return web, staying, len(self.terms), self.owners.rows("x").get(0, 0)


@pytest.fixture
def world() -> Watched:
    return Watched()


def reported(cpu: str) -> ContainerStatus:
    return ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(pod(), id="as it was assumed"),
        pytest.param(with_status(pod(), conditions=(SCHEDULED,)), id="with a condition"),
        pytest.param(with_status(pod(), container_statuses=(reported("1"),)), id="with resources as they were wanted"),
    ],
)
def test_a_confirmation_neither_removes_nor_adds(world, seen):
    pending = pod(node="")
    world.cache.expect(pending)
    world.cache.assume(pending, "a")
    before = world.counters.get(WEB).version

    assert world.cache.add_pod(seen) == CacheOutcome.CONFIRMED
    assert world.heard == ["added", "replaced"]
    assert world.counters.get(WEB).version == before
    assert world.counted() == (1, 1, 0, 0)
    assert world.cache.pods_on("a") == (seen,)
    world.cache.remove_pod(seen)
    assert world.counted() == (0, 0, 0, 0)


def test_an_object_of_another_namespace_with_the_same_uid_is_counted_there(world):
    """No API server gives a UID twice, but a counter must not depend on that."""
    world.cache.add_pod(pod())
    moved = msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().metadata, namespace="other"))
    world.cache.add_pod(moved)
    other = PodSelector(frozenset({"other"}), selector_from_labels({"app": "web"}))
    assert world.counters.get(other).number(0) == 1
    assert world.counted() == (1, 1, 0, 0)


def test_a_condition_is_no_part_of_the_template(world):
    plain = world.cache.entries.entry(pod())
    assert world.cache.entries.entry(with_status(pod(), conditions=(SCHEDULED,))).requests is plain.requests


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(pod(app="db"), (0, 0, 0, 0), id="another label"),
        pytest.param(pod(owner="x"), (1, 1, 0, 1), id="a key of an index"),
        pytest.param(terminating(pod()), (1, 0, 0, 0), id="terminating"),
        pytest.param(with_affinity(pod()), (1, 1, 1, 0), id="an affinity term"),
        pytest.param(with_status(pod(), container_statuses=(reported("2"),)), (1, 1, 0, 0), id="more in use"),
    ],
)
def test_a_change_counts_and_goes_with_the_pod(world, new, expected):
    world.cache.add_pod(pod())
    assert world.counted() == (1, 1, 0, 0)
    assert world.cache.add_pod(new) == CacheOutcome.UPDATED
    assert world.counted() == expected
    assert world.cache.add_pod(pod()) == CacheOutcome.UPDATED
    assert world.counted() == (1, 1, 0, 0)
    world.cache.add_pod(new)
    world.cache.remove_pod(new)
    assert world.counted() == (0, 0, 0, 0)


def test_an_unchanged_term_and_key_stay(world):
    first = with_affinity(pod(owner="x"))
    world.cache.add_pod(first)
    version = world.terms.version.value
    world.cache.add_pod(with_status(first, conditions=(SCHEDULED,)))

    assert world.counted() == (1, 1, 1, 1)
    assert world.terms.version.value == version
    world.cache.remove_pod(first)
    assert world.counted() == (0, 0, 0, 0)
