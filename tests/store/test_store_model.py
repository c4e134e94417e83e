"""The store against a naive model: random writes, then every promise about versions and watches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moorage.api.errors import AlreadyExists, Conflict, Gone, NotFound
from moorage.api.resources import NODES, PODS
from moorage.store.objects import Key, Raw, copy_json
from moorage.store.reading import Subscription
from tests.store.kit import new_store, node, pod

NAMES = st.sampled_from(["a", "b", "c"])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
SELECTOR = "status.phase!=Succeeded,status.phase!=Failed"


def selected(state: dict[Key, Raw]) -> dict[Key, Raw]:
    return {key: raw for key, raw in state.items() if raw["status"]["phase"] not in ("Succeeded", "Failed")}


def replay(state: dict[Key, Raw], watch: Subscription) -> list[int]:
    """Applies what a watch gives to a state, as an informer would; gives the versions in order."""
    versions: list[int] = []
    for event in watch.take():
        assert event.stored is not None
        known = event.stored.key in state
        assert {"ADDED": not known, "MODIFIED": known, "DELETED": known}[event.type]
        if event.type == "DELETED":
            del state[event.stored.key]
        else:
            state[event.stored.key] = event.stored.raw
        assert event.stored.raw["metadata"]["resourceVersion"] == str(event.version)
        versions.append(event.version)
    return versions


class StoreMachine(RuleBasedStateMachine):
    """The model is the state of all pods after each version, kept as deep copies for ever."""

    @initialize()
    def begin(self) -> None:
        self.store = new_store(history_limit=12)
        self.states: dict[int, dict[Key, Raw]] = {1: {}}
        self.uids: set[str] = set()
        self.unseen = 0
        self.live = self.store.watch(PODS)
        self.live_state: dict[Key, Raw] = {}
        self.narrow = self.store.watch(PODS, field_selector=SELECTOR)
        self.narrow_state: dict[Key, Raw] = {}
        self.pages: list[tuple[int, str, list[str]]] = []

    def now(self) -> dict[Key, Raw]:
        return self.states[max(self.states)]

    def note(self) -> None:
        """Records the state after a write that may have made a version."""
        current = {stored.key: stored.raw for stored in self.store.list(PODS).items}
        if self.store.version not in self.states:
            self.states[self.store.version] = copy_current(current)
            self.unseen += 1

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        if ("default", name) in self.now():
            with pytest.raises(AlreadyExists):
                self.store.create(PODS, pod(name))
            return
        uid = self.store.create(PODS, pod(name)).uid
        assert uid not in self.uids
        self.uids.add(uid)
        self.note()

    @rule(name=NAMES, value=st.integers(0, 1), old=st.booleans())
    def label(self, name: str, value: int, old: bool) -> None:
        raw = self.now().get(("default", name))
        if raw is None:
            return
        wanted = {**raw, "metadata": {**raw["metadata"], "labels": {"v": str(value)}}}
        if old:
            wanted["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) - 1)
            with pytest.raises(Conflict):
                self.store.replace(PODS, wanted)
            return
        unchanged = raw["metadata"].get("labels") == {"v": str(value)}
        before = self.store.version
        self.store.replace(PODS, wanted)
        assert (self.store.version == before) == unchanged
        self.note()

    @rule(name=NAMES, phase=PHASES)
    def set_phase(self, name: str, phase: str) -> None:
        patch = {"status": {"phase": phase}}
        if ("default", name) not in self.now():
            with pytest.raises(NotFound):
                self.store.patch(PODS, name, patch, namespace="default", subresource="status")
            return
        self.store.patch(PODS, name, patch, namespace="default", subresource="status")
        self.note()

    @rule(name=NAMES, place=st.sampled_from(["n1", "n2"]))
    def bind(self, name: str, place: str) -> None:
        raw = self.now().get(("default", name))
        if raw is None:
            with pytest.raises(NotFound):
                self.store.bind(name, "default", place)
        elif raw["spec"].get("nodeName") or "deletionTimestamp" in raw["metadata"]:
            with pytest.raises(Conflict):
                self.store.bind(name, "default", place)
        else:
            self.store.bind(name, "default", place, uid=raw["metadata"]["uid"])
            self.note()

    @rule(name=NAMES, grace=st.sampled_from([None, 0, 10]))
    def delete(self, name: str, grace: int | None) -> None:
        raw = self.now().get(("default", name))
        if raw is None:
            with pytest.raises(NotFound):
                self.store.delete(PODS, name, namespace="default")
            return
        with pytest.raises(Conflict):
            self.store.delete(PODS, name, namespace="default", uid="another")
        self.store.delete(PODS, name, namespace="default", grace_period=grace)
        self.note()

    @rule()
    def write_elsewhere(self) -> None:
        self.store.create(NODES, node(f"n{self.store.version}"))
        self.note()

    @rule()
    def compact(self) -> None:
        self.drain()
        self.store.compact()

    @rule()
    def drain(self) -> None:
        for watch, state in ((self.live, self.live_state), (self.narrow, self.narrow_state)):
            versions = replay(state, watch)
            assert versions == sorted(set(versions))
        self.unseen = 0
        assert self.live_state == self.now()
        assert strip(self.narrow_state) == strip(selected(self.now()))

    @rule(back=st.integers(0, 20))
    def watch_from_the_past(self, back: int) -> None:
        version = max(1, self.store.version - back)
        state = dict(self.states[version])
        try:
            watch = self.store.watch(PODS, resource_version=str(version))
        except Gone:
            assert version < self.store._table(PODS).floor
            return
        replay(state, watch)
        watch.close()
        assert state == self.now()

    @rule()
    def begin_pages(self) -> None:
        first = self.store.list(PODS, limit=1)
        if first.next_page:
            expected = sorted(name for _, name in self.now())[1:]
            self.pages.append((first.version, first.next_page, expected))

    @invariant()
    def later_pages_show_the_moment_of_the_first(self) -> None:
        for version, page, expected in self.pages[-3:]:
            try:
                rest = self.store.list(PODS, page=page)
            except Gone:
                assert version < self.store._table(PODS).floor
                continue
            assert [stored.name for stored in rest.items] == expected
            assert {s.key: s.raw for s in rest.items}.items() <= self.states[version].items()

    @invariant()
    def reads_agree_with_the_model(self) -> None:
        listing = self.store.list(PODS)
        assert {stored.key: stored.raw for stored in listing.items} == self.now()
        assert listing.version == self.store.version == max(self.states)
        for stored in listing.items:
            assert self.store.get(PODS, stored.name, "default") is stored

    @invariant()
    def lagging_watches_are_kept_alive(self) -> None:
        # Drained before the history of twelve changes forgets what they have not seen.
        if self.unseen >= 10:
            self.drain()


def copy_current(state: dict[Key, Raw]) -> dict[Key, Raw]:
    return {key: copy_json(raw) for key, raw in state.items()}


def strip(state: dict[Key, Raw]) -> dict[Key, Any]:
    return {key: raw["metadata"]["uid"] for key, raw in state.items()}


StoreMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestStoreMachine = StoreMachine.TestCase
