"""Watches: every change in order and without gaps, or an honest 410."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Gone
from moorage.api.resources import NODES, PODS
from moorage.store.reading import StoreEvent, Subscription
from moorage.store.store import Store
from tests.store.kit import labelled, new_store, node, pod

NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def seen(watch: Subscription) -> list[tuple[str, str, int]]:
    return [(e.type, e.stored.name if e.stored else "", e.version) for e in watch.take()]


def set_phase(store: Store, name: str, phase: str) -> None:
    store.patch(PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status")


class TestFrom:
    def test_a_version_gives_what_came_after_it(self):
        store = new_store()
        since = store.create(PODS, pod("a")).resource_version
        store.create(PODS, pod("b"))
        store.bind("a", "default", "n1")
        store.delete(PODS, "b", namespace="default")
        watch = store.watch(PODS, resource_version=since)
        assert seen(watch) == [("ADDED", "b", 3), ("MODIFIED", "a", 4), ("DELETED", "b", 5)]
        assert seen(watch) == []
        store.create(PODS, pod("c"))
        assert seen(watch) == [("ADDED", "c", 6)]

    @pytest.mark.parametrize("version", ["", "0"], ids=["no version", "any version"])
    def test_no_version_gives_the_present_first(self, version):
        store = new_store()
        store.create(PODS, pod("b"))
        store.create(PODS, pod("a"))
        watch = store.watch(PODS, resource_version=version)
        store.create(PODS, pod("c"))
        assert seen(watch) == [("ADDED", "a", 3), ("ADDED", "b", 2), ("ADDED", "c", 4)]

    def test_initial_events_end_with_a_marked_bookmark(self):
        store = new_store()
        store.create(PODS, pod("a"))
        watch = store.watch(PODS, send_initial_events=True)
        store.create(PODS, pod("b"))
        added, end, later = watch.take()
        assert (added.type, end, later.type) == ("ADDED", StoreEvent("BOOKMARK", None, 2, True), "ADDED")

    def test_a_version_yet_to_come_gives_only_what_comes_after_it(self):
        store = new_store()
        watch = store.watch(PODS, resource_version="3")
        for name in "abc":
            store.create(PODS, pod(name))
        assert seen(watch) == [("ADDED", "c", 4)]

    def test_changes_of_other_resources_are_not_seen(self):
        store = new_store()
        watch = store.watch(PODS)
        store.create(NODES, node())
        assert seen(watch) == []


class TestSelection:
    def test_an_object_that_leaves_is_deleted_and_one_that_enters_is_added(self):
        store = new_store()
        watch = store.watch(PODS, field_selector=NOT_FINISHED)
        store.create(PODS, pod())
        set_phase(store, "a", "Running")
        set_phase(store, "a", "Succeeded")
        set_phase(store, "a", "Failed")
        set_phase(store, "a", "Running")
        assert [kind for kind, _, _ in seen(watch)] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]

    def test_what_leaves_is_shown_in_its_last_matching_state_under_the_new_version(self):
        store = new_store()
        watch = store.watch(PODS, field_selector=NOT_FINISHED)
        store.create(PODS, pod())
        set_phase(store, "a", "Failed")
        latest = watch.take()[-1].stored
        assert latest is not None
        assert latest.raw["status"]["phase"] == "Pending"
        assert latest.raw["metadata"]["resourceVersion"] == "3"

    def test_an_object_deleted_outside_the_selection_is_not_seen(self):
        store = new_store()
        store.create(PODS, pod())
        watch = store.watch(PODS, resource_version="2", label_selector="app=web")
        store.delete(PODS, "a", namespace="default")
        assert seen(watch) == []

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            pytest.param({"namespace": "one"}, ["a"], id="namespace"),
            pytest.param({"label_selector": "app in (web,db)"}, ["b"], id="labels"),
            pytest.param({"field_selector": "metadata.name=c"}, ["c"], id="fields"),
            pytest.param({"namespace": "two", "label_selector": "!app"}, ["c"], id="several"),
        ],
    )
    def test_narrowed_watches(self, options: dict[str, Any], names: list[str]):
        store = new_store()
        before = store.watch(PODS, **options)
        store.create(PODS, pod("a", "one"))
        store.create(PODS, labelled(pod("b", "two"), app="web"))
        store.create(PODS, pod("c", "two"))
        after = store.watch(PODS, **options)
        assert [name for _, name, _ in seen(before)] == [name for _, name, _ in seen(after)] == names


class TestDeletion:
    def test_the_event_carries_the_last_state_under_the_version_of_the_deletion(self):
        store = new_store()
        store.create(PODS, labelled(pod(), app="web"))
        watch = store.watch(PODS, resource_version="2")
        store.delete(PODS, "a", namespace="default")
        (event,) = watch.take()
        assert event.stored is not None
        assert event.stored.raw["metadata"]["labels"] == {"app": "web"}
        assert event.stored.raw["metadata"]["resourceVersion"] == str(event.version) == "3"

    def test_a_graceful_deletion_is_a_change_and_then_a_deletion(self):
        store = new_store()
        store.create(PODS, pod())
        store.bind("a", "default", "n1")
        watch = store.watch(PODS, resource_version=str(store.version))
        store.delete(PODS, "a", namespace="default")
        store.finish_deletion("a", "default")
        assert [kind for kind, _, _ in seen(watch)] == ["MODIFIED", "DELETED"]


class TestForgetting:
    def test_a_version_before_the_history_is_gone(self):
        store = new_store(history_limit=4)
        for number in range(20):
            store.create(PODS, pod(f"p{number}"))
        with pytest.raises(Gone, match=r"too old resource version: 2 \(\d+\)"):
            store.watch(PODS, resource_version="2")
        assert len(seen(store.watch(PODS, resource_version=str(store.version - 4)))) == 4

    def test_the_history_stays_bounded(self):
        store = new_store(history_limit=100)
        store.create(PODS, pod())
        watch = store.watch(PODS, resource_version="2")
        for number in range(1000):
            store.patch(PODS, "a", {"metadata": {"labels": {"n": str(number)}}}, namespace="default")
            if number % 50 == 0:
                watch.take()
        assert len(store._table(PODS).history) <= 125

    def test_compaction_ends_watches_that_lag_and_spares_those_that_do_not(self):
        store = new_store()
        lagging, current = store.watch(PODS), store.watch(PODS)
        store.create(PODS, pod())
        assert len(current.take()) == 1
        store.compact()
        store.create(PODS, pod("b"))
        with pytest.raises(Gone):
            lagging.take()
        assert lagging.closed
        assert lagging.take() == []
        assert seen(current) == [("ADDED", "b", 3)]

    def test_compaction_up_to_a_version_keeps_what_came_later(self):
        store = new_store()
        for name in "abc":
            store.create(PODS, pod(name))
        store.compact(3)
        with pytest.raises(Gone):
            store.watch(PODS, resource_version="2")
        assert seen(store.watch(PODS, resource_version="3")) == [("ADDED", "c", 4)]

    def test_compaction_forgets_moments_in_which_the_resource_did_not_change_too(self):
        store = new_store()
        store.create(PODS, pod())
        store.create(NODES, node())
        store.compact()
        with pytest.raises(Gone, match=r"too old resource version: 2 \(3\)"):
            store.watch(PODS, resource_version="2")
        assert seen(store.watch(PODS, resource_version="3")) == []

    def test_a_watcher_beyond_its_buffer_is_ended_and_nothing_is_dropped_silently(self):
        store = new_store()
        watch = store.watch(PODS, buffer=3)
        for name in "abc":
            store.create(PODS, pod(name))
        assert len(watch.take()) == 3
        for name in "defg":
            store.create(PODS, pod(name))
        with pytest.raises(Gone, match="fell behind"):
            watch.take()


class TestWaking:
    def test_the_owner_is_woken_by_changes_and_bookmarks_until_it_closes(self):
        store = new_store()
        woken: list[str] = []
        watch = store.watch(PODS)
        watch.wake = lambda: woken.append("!")
        store.create(PODS, pod())
        store.create(NODES, node())
        store.bookmark()
        assert len(woken) == 2
        watch.close()
        store.create(PODS, pod("b"))
        assert len(woken) == 2
        assert watch.take() == []

    def test_a_bookmark_comes_after_everything_so_far(self):
        store = new_store()
        watch = store.watch(PODS)
        store.create(PODS, pod())
        store.bookmark(PODS)
        store.create(NODES, node())
        assert seen(watch) == [("ADDED", "a", 2), ("BOOKMARK", "", 3)]
        assert seen(watch) == []

    def test_events_can_be_taken_in_slices(self):
        store = new_store()
        watch = store.watch(PODS)
        for number in range(5):
            store.create(PODS, pod(f"p{number}"))
        assert [len(watch.take(2)) for _ in range(4)] == [2, 2, 1, 0]

    def test_watchers_share_one_typed_object(self):
        store = new_store()
        first, second = store.watch(PODS), store.watch(PODS)
        store.create(PODS, pod())
        (one,), (two,) = first.take(), second.take()
        assert one.stored is not None
        assert two.stored is not None
        assert one.stored.typed is two.stored.typed
