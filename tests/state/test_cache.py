"""The rules of the cluster cache, one by one. After every step all sums equal a recount."""

from __future__ import annotations

import io
import logging
from typing import Any

import msgspec
import pytest

from moorage.api.errors import QuantityError
from moorage.api.pod import Pod
from moorage.state.cache import CacheOutcome, ClusterCache
from moorage.state.columns import CacheError
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import bound_to
from moorage.telemetry import logs
from tests.state.objects import ZONE, make_node, make_pod


@pytest.fixture
def cache() -> ClusterCache:
    """Two nodes of 4 cpu each."""
    cache = ClusterCache(NodeTable(width=2))
    cache.add_node(make_node("a"))
    cache.add_node(make_node("b"))
    return cache


def bound(node: str, **fields: Any) -> Pod:
    """The pod of most tests, bound."""
    return make_pod("p", node=node, **{"cpu": "1"} | fields)


PENDING = make_pod("p", cpu="1")


def used(cache: ClusterCache) -> dict[str, int]:
    """Milli-cpu per node name, where there is any; checks the whole cache on the way."""
    cache.validate()
    table = cache.table
    sums = {name: table.load_on(row).requested["cpu"] for name, row in table.known_rows()}
    return {name: amount for name, amount in sums.items() if amount}


class TestAssuming:
    def test_an_assumed_pod_counts_in_full(self, cache):
        cache.assume(PENDING, "a")

        assumed = cache.get("p").pod
        assert assumed == bound_to(PENDING, "a")
        assert assumed.spec.node_name == "a"
        assert PENDING.spec.node_name == ""
        assert used(cache) == {"a": 1000}
        assert cache.is_assumed("p")
        assert [found.pod for found in cache.assumed()] == [assumed]
        assert cache.pods_on("a") == (assumed,)

    @pytest.mark.parametrize("known", ["assumed", "added"])
    def test_a_known_uid_cannot_be_assumed(self, cache, known):
        if known == "assumed":
            cache.assume(PENDING, "a")
        else:
            cache.add_pod(bound("a"))
        with pytest.raises(CacheError, match="it is already in the cache"):
            cache.assume(PENDING, "b")
        assert used(cache) == {"a": 1000}

    def test_a_pod_cannot_be_assumed_nowhere(self, cache):
        with pytest.raises(CacheError, match="the node has no name"):
            cache.assume(PENDING, "")

    def test_forgetting_releases_it(self, cache):
        cache.assume(PENDING, "a")

        assert cache.forget("p")
        assert used(cache) == {}
        assert cache.get("p") is None
        cache.assume(PENDING, "b")

    def test_only_assumed_pods_are_forgotten(self, cache):
        cache.assume(PENDING, "a")
        cache.add_pod(bound("a"))

        assert not cache.forget("p")
        assert not cache.forget("never")
        assert used(cache) == {"a": 1000}

    def test_seen_on_its_node_it_is_confirmed(self, cache):
        cache.assume(PENDING, "a")

        assert cache.add_pod(bound("a")) == CacheOutcome.CONFIRMED
        assert not cache.is_assumed("p")
        assert used(cache) == {"a": 1000}
        assert cache.corrections == {}

    def test_seen_as_an_update_it_is_confirmed_too(self, cache):
        cache.assume(PENDING, "a")

        assert cache.update_pod(PENDING, bound("a", cpu="2")) == CacheOutcome.CONFIRMED
        assert used(cache) == {"a": 2000}

    def test_seen_on_another_node_it_moves_and_that_is_reported(self, cache, caplog):
        cache.assume(PENDING, "a")

        with caplog.at_level(logging.WARNING):
            assert cache.add_pod(bound("b")) == CacheOutcome.MOVED
        assert used(cache) == {"b": 1000}
        assert not cache.is_assumed("p")
        assert cache.corrections == {"assumed_on_another_node": 1}
        assert [record.message for record in caplog.records] == ["Pod cache corrected"]

    def test_a_correction_is_logged_with_the_pod_both_nodes_and_the_problem(self, cache):
        stream = io.StringIO()
        logs.setup(stream=stream)
        try:
            cache.assume(PENDING, "a")
            cache.add_pod(bound("b"))
        finally:
            logs.remove()
        assert stream.getvalue().partition("] ")[2] == (
            '"Pod cache corrected" problem="assumed_on_another_node" pod="default/p" uid="p" node="b" cached_node="a"\n'
        )

    def test_an_update_without_a_node_is_ignored(self, cache):
        cache.assume(PENDING, "a")

        assert cache.update_pod(PENDING, make_pod("p", cpu="3")) == CacheOutcome.IGNORED
        assert cache.is_assumed("p")
        assert used(cache) == {"a": 1000}
        assert cache.corrections == {}

    @pytest.mark.parametrize("node", ["", "a"])
    def test_deleted_it_is_released_at_once(self, cache, node):
        cache.assume(PENDING, "a")

        assert cache.remove_pod(make_pod("p", node=node)) == CacheOutcome.RELEASED
        assert used(cache) == {}
        assert not cache.forget("p")

    def test_on_a_node_that_has_gone_it_is_still_accounted(self, cache):
        cache.assume(PENDING, "a")
        cache.remove_node(make_node("a"))

        assert used(cache) == {"a": 1000}
        assert cache.forget("p")
        assert cache.table.ghosts() == []


class TestAdding:
    def test_a_pod_is_accounted_once_however_often_it_is_added(self, cache):
        outcomes = [cache.add_pod(bound("a")) for _ in range(3)]

        assert outcomes == [CacheOutcome.ADDED, CacheOutcome.UPDATED, CacheOutcome.UPDATED]
        assert used(cache) == {"a": 1000}

    def test_a_pod_without_a_node_is_not_accounted(self, cache):
        assert cache.add_pod(PENDING) == CacheOutcome.IGNORED
        assert used(cache) == {}

    def test_an_update_of_an_unknown_pod_adds_it(self, cache):
        assert cache.update_pod(PENDING, bound("a")) == CacheOutcome.ADDED

    def test_a_pod_on_an_unknown_node_is_accounted_when_the_node_comes(self, cache):
        cache.add_pod(bound("c"))
        assert used(cache) == {"c": 1000}
        assert cache.table.nodes().names == ["a", "b"]

        cache.add_node(make_node("c"))
        assert used(cache) == {"c": 1000}
        assert cache.table.nodes().names == ["a", "b", "c"]

    def test_a_bad_quantity_changes_nothing(self, cache):
        cache.add_pod(bound("a"))
        with pytest.raises(QuantityError):
            cache.update_pod(bound("a"), bound("a", cpu="lots"))
        assert used(cache) == {"a": 1000}


class TestUpdating:
    @pytest.mark.parametrize("cpu", ["500m", "3"])
    def test_a_resize_changes_the_sums(self, cache, cpu):
        cache.add_pod(bound("a"))

        assert cache.update_pod(bound("a"), bound("a", cpu=cpu)) == CacheOutcome.UPDATED
        assert used(cache) == {"a": 500 if cpu == "500m" else 3000}

    def test_a_new_version_is_the_one_shown(self, cache):
        cache.add_pod(bound("a"))
        version = cache.table.version
        newer = bound("a", labels={"app": "web"})
        cache.update_pod(bound("a"), newer)

        assert cache.pods_on("a") == (newer,)
        assert cache.table.changed_since(version) == [0]

    def test_another_node_is_corrected_never_fatal(self, cache):
        cache.add_pod(bound("a"))

        assert cache.update_pod(bound("a"), bound("b")) == CacheOutcome.MOVED
        assert used(cache) == {"b": 1000}
        assert cache.corrections == {"moved": 1}

    def test_a_version_without_node_is_older_than_the_bound_one(self, cache):
        cache.add_pod(bound("a"))

        assert cache.update_pod(bound("a"), PENDING) == CacheOutcome.IGNORED
        assert used(cache) == {"a": 1000}
        assert cache.corrections == {"seen_without_its_node": 1}

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_finished_pod_releases_what_it_held(self, cache, phase):
        cache.add_pod(bound("a"))

        assert cache.update_pod(bound("a"), bound("a", phase=phase)) == CacheOutcome.RELEASED
        assert used(cache) == {}
        assert cache.add_pod(bound("a", phase=phase)) == CacheOutcome.IGNORED

    @pytest.mark.parametrize(
        ("node", "expected"),
        [pytest.param("", {}, id="not yet bound"), pytest.param("b", {"b": 2000}, id="bound already")],
    )
    def test_another_uid_under_the_name_is_another_pod(self, cache, node, expected):
        cache.add_pod(bound("a", uid="old"))
        cache.remove_pod(bound("a", uid="old"))
        cache.add_pod(make_pod("p", uid="new", node=node, cpu="2"))

        assert used(cache) == expected
        assert cache.get("old") is None

    def test_another_uid_is_no_new_version(self, cache):
        cache.add_pod(bound("a", uid="old"))

        with pytest.raises(CacheError, match=r"default/p \(new\) is not a version of the pod with UID old"):
            cache.update_pod(bound("a", uid="old"), bound("b", uid="new"))
        assert used(cache) == {"a": 1000}


class TestRemoving:
    def test_unknown_and_repeated_removals_change_nothing(self, cache):
        cache.add_pod(bound("a"))

        assert cache.remove_pod(bound("a")) == CacheOutcome.RELEASED
        assert cache.remove_pod(bound("a")) == CacheOutcome.IGNORED
        assert used(cache) == {}

    def test_a_stale_object_without_node_is_enough(self, cache):
        cache.add_pod(bound("a"))

        assert cache.remove_pod(PENDING) == CacheOutcome.RELEASED
        assert cache.corrections == {}

    def test_a_removal_from_another_node_is_corrected(self, cache):
        cache.add_pod(bound("a"))

        assert cache.remove_pod(bound("b")) == CacheOutcome.RELEASED
        assert used(cache) == {}
        assert cache.corrections == {"removed_from_another_node": 1}

    def test_only_that_pod_is_released(self, cache):
        cache.add_pod(make_pod("p", uid="1", node="a", cpu="1"))
        cache.add_pod(make_pod("q", uid="2", node="a", cpu="2"))
        cache.remove_pod(make_pod("p", uid="1", node="a"))

        assert used(cache) == {"a": 2000}


class TestNodes:
    def test_pods_survive_their_node(self, cache):
        cache.add_pod(bound("a"))

        assert cache.remove_node(make_node("a"))
        assert not cache.remove_node(make_node("a"))
        assert used(cache) == {"a": 1000}
        assert cache.table.nodes().names == ["b"]

    def test_allocatable_below_what_is_used_keeps_node_and_pods(self, cache):
        cache.add_pod(bound("a"))
        cache.update_node(make_node("a"), make_node("a", cpu="500m"))

        assert used(cache) == {"a": 1000}
        assert cache.table.view(0).free("cpu") == -500

    def test_a_zone_change_lists_the_node_once(self, cache):
        cache.update_node(make_node("a"), make_node("a", zone="x"))

        assert cache.table.nodes().names == ["b", "a"]
        assert cache.table.nodes().label_equals(ZONE, "x").tolist() == [False, True]

    def test_another_uid_is_a_new_node_and_comes_last(self, cache):
        cache.add_pod(bound("a"))
        cache.add_node(make_node("a", uid="second"))

        assert cache.table.nodes().names == ["b", "a"]
        assert used(cache) == {"a": 1000}

    def test_a_node_without_a_name_is_set_aside(self, cache):
        cache.add_node(make_node(""))

        assert cache.table.nodes().names == ["a", "b"]
        assert cache.corrections == {"node_without_a_name": 1}

    def test_another_name_is_another_node(self, cache):
        cache.update_node(make_node("a"), make_node("c"))

        assert cache.table.nodes().names == ["b", "c"]


class TestChecking:
    def test_validate_tells_what_differs(self, cache):
        cache.add_pod(bound("a"))
        found = cache.get("p")
        assert found is not None
        cache.table.remove_pod("a", found)

        with pytest.raises(CacheError, match=r"node a: pods is \[\], not \['p'\]"):
            cache.validate()

    def test_validate_misses_nodes_and_marks(self, cache):
        cache.assume(PENDING, "c")
        found = cache.get("p")
        assert found is not None
        cache.table.remove_pod("c", found)
        found.assumed = False

        with pytest.raises(CacheError, match="node c: not in the table; the list of assumed pods"):
            cache.validate()

    @pytest.mark.parametrize(
        ("nodes", "pods", "expected"),
        [
            pytest.param("ab", [bound("a")], [], id="all is well"),
            pytest.param("a", [bound("a")], ["node b: cached but gone"], id="a node is gone"),
            pytest.param("abc", [bound("a")], ["node c: not cached"], id="a node is missing"),
            pytest.param(
                "ab",
                [],
                [
                    "pod default/p: cached but gone",
                    "node a: cached requests {'cpu': 1000, 'pods': 1}, the API server's pods request {}",
                ],
                id="a pod is gone",
            ),
            pytest.param(
                "ab",
                [bound("a"), make_pod("q", node="b")],
                [
                    "pod default/q: not cached on b",
                    "node b: cached requests {}, the API server's pods request {'pods': 1}",
                ],
                id="a pod is missing",
            ),
            pytest.param(
                "ab",
                [bound("a", cpu="2")],
                [
                    "node a: cached requests {'cpu': 1000, 'pods': 1}, "
                    "the API server's pods request {'cpu': 2000, 'pods': 1}"
                ],
                id="a resize was missed",
            ),
            pytest.param("ab", [bound("a"), make_pod("q"), bound("b", uid="x", phase="Failed")], [], id="others"),
        ],
    )
    def test_compare_lists_differences_to_the_api_server(self, cache, nodes, pods, expected):
        cache.add_pod(bound("a"))

        assert cache.compare([make_node(name) for name in nodes], pods) == expected

    @pytest.mark.parametrize(
        ("seen", "problem"),
        [
            pytest.param(bound("b"), "pod default/p: cached on a but bound to b", id="on another node"),
            pytest.param(bound("a", phase="Failed"), "pod default/p: cached but Failed", id="finished"),
            pytest.param(PENDING, "pod default/p: cached on a but not bound", id="not bound"),
        ],
    )
    def test_compare_names_pods_in_the_wrong_place(self, cache, seen, problem):
        cache.add_pod(bound("a"))

        assert problem in cache.compare([make_node("a"), make_node("b")], [seen])

    def test_an_assumed_pod_is_no_difference(self, cache):
        cache.assume(PENDING, "a")

        assert cache.compare([make_node("a"), make_node("b")], [PENDING]) == []


def test_objects_are_never_changed(cache):
    before = msgspec.json.encode(PENDING)
    cache.assume(PENDING, "a")
    cache.add_pod(bound("a", cpu="2"))
    cache.forget("p")

    assert msgspec.json.encode(PENDING) == before
