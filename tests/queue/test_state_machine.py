"""Random lives of pods against a naive model: no pod is lost, in two places, or not woken."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moorage.api.pod import Pod
from moorage.framework.events import QueuedPod, QueueingHint
from tests.queue.kit import NODE_ADD, NODE_DELETE, NODE_LABEL, POD_ALL, Hint, World, a_pod, changed, on

PLUGINS = ("Fit", "Ports", "Gang")
EVENTS = {NODE_ADD: "Fit", NODE_DELETE: "Ports", NODE_LABEL: "Gang"}
"""Each plugin waits for one event; its hint says Queue to pods of the application in `helps`."""


class QueueLife(RuleBasedStateMachine):
    """The model: UID to the place where the pod must be, as far as one can know without a heap or a group."""

    flush_after: float | None = 300.0

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.flush_after)
        self.queue = self.world.queue
        self.helps = ""
        hint = Hint(self._answer)
        self.world.register(
            Fit=[on(NODE_ADD, hint)],
            Ports=[on(NODE_DELETE, hint, per_pod=True)],
            Gang=[on(NODE_LABEL, hint)],
            Gate=[on(POD_ALL)],
        )
        self.places: dict[str, str] = {}
        self.flying: dict[str, tuple[QueuedPod, list[tuple[str, str]], bool]] = {}
        """Popped pods, what happened since, and whether they are still wanted."""
        self.pods: dict[str, Pod] = {}
        self.version = 1
        self.born = 0

    def _answer(self, pod: Pod, old: object, new: object) -> QueueingHint:
        return QueueingHint.QUEUE if pod.labels["app"] == self.helps else QueueingHint.SKIP

    def _live(self) -> list[str]:
        return sorted(self.pods)

    def _seen(self, uid: str) -> str | None:
        location = self.queue.pending.where(uid)
        return location.place if location else None

    @rule(app=st.sampled_from("ab"), priority=st.integers(0, 3), gated=st.booleans())
    def add(self, app, priority, gated):
        self.born += 1
        pod = a_pod(f"p{self.born}", priority=priority, labels={"app": app})
        if gated:
            self.world.hooks.gates[pod.name] = "Gate"
        self.pods[pod.uid] = pod
        self.queue.add(pod)
        self.places[pod.uid] = "gated" if gated else "active"

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def open_gate(self, data):
        uid = data.draw(st.sampled_from(self._live()))
        self.world.hooks.gates.pop(self.pods[uid].name, None)
        self._update(uid)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def update(self, data):
        self._update(data.draw(st.sampled_from(self._live())))

    def _update(self, uid: str) -> None:
        """Only gates listen to pod updates."""
        self.version += 1
        old = self.pods[uid]
        new = changed(old, version=str(self.version), priority_class_name=str(self.version))
        self.pods[uid] = new
        self.queue.update(old, new)
        if self.places.get(uid) == "gated" and new.name not in self.world.hooks.gates:
            self.places[uid] = self._after_wake(uid)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete(self, data):
        uid = data.draw(st.sampled_from(self._live()))
        pod = self.pods.pop(uid)
        self.queue.delete(pod)
        self.places.pop(uid, None)
        if uid in self.flying:
            info, events, _ = self.flying[uid]
            self.flying[uid] = (info, events, False)

    @rule()
    def pop(self):
        ready = {uid for uid, place in self.places.items() if place == "active"}
        early = {
            uid for uid, place in self.places.items() if place == "backoff" and self._info(uid).unschedulable_plugins
        }
        info = self.queue.pop()
        if info is None:
            assert not ready
            assert not early
            return
        assert info.uid in (ready or early)
        if ready:
            best = max(self.pods[uid].priority for uid in ready)
            assert info.pod.priority == best
        del self.places[info.uid]
        self.flying[info.uid] = (info, [], True)

    def _info(self, uid: str) -> QueuedPod:
        info = self.queue.pending.get(uid)
        assert info is not None
        return info

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def succeed(self, data):
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        del self.flying[uid]
        self.pods.pop(uid, None)
        self.queue.done(uid)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), plugins=st.sets(st.sampled_from(PLUGINS)), pending=st.booleans())
    def fail(self, data, plugins, pending):
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        info, events, wanted = self.flying.pop(uid)
        waiting = frozenset({"Gang"} & plugins) if pending else frozenset()
        app = info.pod.labels["app"]
        # The hint is asked on return, about what it would say now.
        woken_by = {plugin for plugin, kind in events if plugin in plugins and self._helps_now(app, kind)}
        forced = any(kind == "force" for _, kind in events)
        returned = self.queue.requeue(info, unschedulable_plugins=frozenset(plugins), pending_plugins=waiting)
        self.queue.done(uid)
        if not wanted:
            assert returned is None
            return
        if plugins and not woken_by and not forced:
            self.places[uid] = "unschedulable"
        elif info.pod.name in self.world.hooks.gates:
            self.places[uid] = "gated"
        else:
            self.places[uid] = "active" if woken_by & waiting else "backoff"
        assert returned == self.places[uid]

    def _helps_now(self, app: str, kind: str) -> bool:
        return kind == "event" and app == self.helps

    @rule(event=st.sampled_from(sorted(EVENTS, key=lambda event: event.label)), app=st.sampled_from("ab"))
    def happen(self, event, app):
        self.helps = app
        plugin = EVENTS[event]
        for uid, place in list(self.places.items()):
            info = self._info(uid)
            if place == "unschedulable" and plugin in info.unschedulable_plugins and info.pod.labels["app"] == app:
                self.places[uid] = self._after_wake(uid, at_once=plugin in info.pending_plugins)
        for _, events, _ in self.flying.values():
            events.append((plugin, "event"))
        self.queue.on_event(event)

    def _after_wake(self, uid: str, at_once: bool = False) -> str:
        info = self._info(uid)
        if info.pod.name in self.world.hooks.gates:
            return "gated"
        return "active" if at_once or info.backoff_until <= self.world.clock.now() else "backoff"

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def activate(self, data):
        uid = data.draw(st.sampled_from(self._live()))
        if uid in self.flying:
            self.flying[uid][1].append(("", "force"))
        elif self.places[uid] == "backoff":
            self.places[uid] = "active"
        elif self.places[uid] in ("unschedulable", "gated"):
            self.places[uid] = self._after_wake(uid, at_once=True)
        self.queue.activate([uid])

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def close_gate(self, data):
        """Felt on the next way to active or backoff only."""
        uid = data.draw(st.sampled_from(self._live()))
        self.world.hooks.gates[self.pods[uid].name] = "Gate"

    @rule(seconds=st.sampled_from([0.3, 1.0, 7.0, 40.0, 400.0]))
    def time_passes(self, seconds):
        self.world.wait(seconds)
        now = self.world.clock.now()
        for uid, place in self.places.items():
            flushed = self.flush_after is not None and seconds == 400.0 and place in ("unschedulable", "gated")
            if place == "backoff" and self._info(uid).backoff_until <= now:
                self.places[uid] = "active"
            elif flushed and self._info(uid).pod.name in self.world.hooks.gates:
                self.places[uid] = "gated"
            elif self.flush_after is not None and self._seen(uid) == "active":
                # When exactly the flush looks is the subject of other tests.
                self.places[uid] = "active"

    @invariant()
    def everyone_is_where_the_model_says(self):
        self.queue.pending.validate()
        for uid, place in self.places.items():
            seen = self._seen(uid)
            if self.flush_after is not None and place == "unschedulable" and seen == "gated":
                self.places[uid] = place = "gated"
            assert seen == place, f"{uid} is in {seen}, not in {place}"
        wanted = {uid for uid, (_, _, alive) in self.flying.items() if alive}
        assert all(self._seen(uid) == "inflight" for uid in wanted)
        assert {info.uid for info, _ in self.queue.pending} == set(self.places) | wanted == set(self.pods)
        assert len(self.queue) == len(self.pods)

    @invariant()
    def nothing_is_kept_for_pods_that_have_returned(self):
        if not self.flying:
            assert self.queue.pending.inflight_events() == {}

    def teardown(self):
        """With every gate open and every event delivered, every pod is tried: no wake-up was lost."""
        self.world.hooks.gates.clear()
        for uid in list(self.flying):
            info, _, _ = self.flying.pop(uid)
            self.queue.requeue(info)
        for uid in self._live():
            self._update(uid)
        for app in "ab":
            for event in EVENTS:
                self.helps = app
                self.queue.on_event(event)
        self.world.wait(20)
        assert sorted(self.world.pop_names()) == sorted(pod.name for pod in self.pods.values())
        assert (len(self.queue), self.queue.pending.inflight_events()) == (0, {})


class QueueLifeWithoutFlush(QueueLife):
    flush_after = None


TestQueueLife = QueueLife.TestCase
TestQueueLifeWithoutFlush = QueueLifeWithoutFlush.TestCase
TestQueueLife.settings = TestQueueLifeWithoutFlush.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
