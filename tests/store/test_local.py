"""The in-process client: the port's contract, typed objects, watches, and what each fault does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from moorage.api.errors import (
    ApiError,
    Conflict,
    Gone,
    NotFound,
    NotSent,
    ObjectError,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
)
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, Unstructured, custom
from moorage.framework.ports import ApiClient, Malformed, PatchType, WatchEvent
from moorage.sim.loop import Deadlock, VirtualClock, run
from moorage.store import faults as effects
from moorage.store.faults import Effect, Fault, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing.builders import make_node, make_pod, make_pods
from tests.store.kit import pod

Body = Callable[[LocalClient], Awaitable[Any]]


def on_client(body: Body, faults: Faults | None = None, seed: int | None = None) -> Any:
    """Runs the body with a client of an empty store, under virtual time."""

    async def main() -> Any:
        clock = VirtualClock()
        return await body(LocalClient(Store(clock.wall, random.Random(1)), clock, faults))

    return run(main(), seed=seed, timeout_virtual=10_000)


async def collect(events: AsyncIterator[WatchEvent], into: list[WatchEvent]) -> None:
    async for event in events:
        into.append(event)


class TestCalls:
    def test_typed_objects_go_in_and_come_out(self):
        async def body(client: ApiClient) -> None:
            created = await client.create(PODS, make_pod("web", cpu="1", labels={"app": "web"}))
            assert isinstance(created, Pod)
            assert created == await client.get(PODS, "web", "default")
            listing = await client.list(PODS, label_selector="app=web")
            assert list(listing.items) == [created]
            assert listing.resource_version == created.resource_version
            await client.bind("web", "default", created.uid, "n1")
            patched = await client.patch(
                PODS, "web", {"status": {"phase": "Running"}}, namespace="default", subresource="status"
            )
            assert (patched.spec.node_name, patched.status.phase) == ("n1", "Running")
            await client.delete(PODS, "web", namespace="default", uid=created.uid, grace_period=0)
            with pytest.raises(NotFound):
                await client.get(PODS, "web", "default")

        on_client(body)

    def test_plain_dictionaries_are_accepted_and_stay_the_callers(self):
        async def body(client: LocalClient) -> None:
            raw = pod("web")
            created = await client.create(PODS, raw)
            raw["spec"]["containers"].append({"name": "late"})
            raw["metadata"]["name"] = "other"
            assert await client.get(PODS, "web", "default") == created
            replaced = await client.replace(NODES, {"metadata": (await self._node(client)), "spec": {}})
            assert replaced.name == "n1"

        on_client(body)

    async def _node(self, client: LocalClient) -> dict[str, Any]:
        created = await client.create(NODES, make_node("n1"))
        return {"name": "n1", "resourceVersion": created.resource_version}

    def test_custom_objects_are_unstructured(self):
        widgets = custom("example.com", "v1", "widgets", "Widget")

        async def body(client: LocalClient) -> None:
            raw = {"metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 3}}
            created = await client.create(widgets, raw)
            assert isinstance(created, Unstructured)
            patch = [{"op": "replace", "path": "/spec/size", "value": 4}]
            patched = await client.patch(widgets, "w", patch, namespace="default", patch_type=PatchType.JSON)
            assert patched.get("spec", "size") == 4
            assert (await client.create(widgets, Unstructured({**raw, "metadata": {
                "name": "v", "namespace": "default"}}))).name == "v"  # fmt: skip

        on_client(body)

    def test_every_call_gives_way_before_the_store_acts_and_before_the_answer(self):
        async def body(client: LocalClient) -> list[str]:
            seen: list[str] = []

            async def others() -> None:
                for _ in range(3):
                    seen.append("there" if client.store.list(PODS).items else "not there")
                    await asyncio.sleep(0)

            async def creator() -> None:
                await client.create(PODS, make_pod())
                seen.append("answered")

            await asyncio.gather(creator(), others())
            return seen

        assert on_client(body) == ["not there", "there", "answered", "there"]

    def test_a_malformed_object_is_set_aside(self):
        async def body(client: LocalClient) -> None:
            client.store.create(PODS, pod("bad", nodeName=7))
            client.store.create(PODS, pod("good"))
            listing = await client.list(PODS)
            assert [obj.name for obj in listing.items] == ["good"]
            assert [bad.key for bad in listing.malformed] == ["default/bad"]
            with pytest.raises(ObjectError, match="default/bad"):
                await client.get(PODS, "bad", "default")
            async with aclosing(client.watch(PODS, resource_version="0")) as events:  # type: ignore[type-var]
                assert isinstance((await anext(events)).object, Malformed)

        on_client(body)

    def test_pages_follow_each_other(self):
        async def body(client: LocalClient) -> list[str]:
            for each in make_pods(5):
                await client.create(PODS, each)
            names: list[str] = []
            page = ""
            while True:
                listing = await client.list(PODS, limit=2, page=page)
                names += [obj.name for obj in listing.items]
                page = listing.next_page
                if not page:
                    return names

        assert on_client(body) == [f"pod-{number}" for number in range(5)]


class TestWatches:
    def test_events_arrive_typed_and_in_order(self):
        async def body(client: LocalClient) -> list[tuple[str, str]]:
            events: list[WatchEvent] = []
            watcher = asyncio.create_task(collect(client.watch(PODS, resource_version="0"), events))
            created = await client.create(PODS, make_pod())
            await client.bind("pod", "default", created.uid, "n1")
            await client.delete(PODS, "pod", namespace="default", grace_period=0)
            await asyncio.sleep(1)
            watcher.cancel()
            return [(event.type, event.object.spec.node_name) for event in events]

        assert on_client(body) == [("ADDED", ""), ("MODIFIED", "n1"), ("DELETED", "n1")]

    def test_a_timeout_ends_the_stream_with_a_bookmark(self):
        async def body(client: LocalClient) -> list[Any]:
            events: list[WatchEvent] = []
            await collect(client.watch(PODS, resource_version="0", timeout=30), events)
            return [events, asyncio.get_running_loop().time()]

        assert on_client(body) == [[WatchEvent("BOOKMARK", None, "1")], 30]

    def test_initial_events_end_with_a_mark(self):
        async def body(client: LocalClient) -> list[tuple[str, bool]]:
            await client.create(PODS, make_pod())
            events: list[WatchEvent] = []
            stream = client.watch(PODS, resource_version="", send_initial_events=True, timeout=1)
            await collect(stream, events)
            return [(event.type, event.initial_events_end) for event in events]

        assert on_client(body) == [("ADDED", False), ("BOOKMARK", True), ("BOOKMARK", False)]

    def test_a_version_that_is_forgotten_is_gone(self):
        async def body(client: LocalClient) -> None:
            await client.create(PODS, make_pod())
            client.store.compact()
            with pytest.raises(Gone):
                await anext(client.watch(PODS, resource_version="1"))

        on_client(body)

    def test_a_closed_watch_leaves_nothing_behind(self):
        async def body(client: LocalClient) -> None:
            await client.create(PODS, make_pod())
            async with aclosing(client.watch(PODS, resource_version="0", timeout=9)) as events:  # type: ignore[type-var]
                await anext(events)
            assert client.cut_watches() == 0
            assert not client.store._table(PODS).listeners

        on_client(body)

    def test_waiting_for_an_event_that_cannot_come_is_a_deadlock(self):
        async def body(client: LocalClient) -> None:
            await anext(client.watch(PODS, resource_version="1"))

        with pytest.raises(Deadlock, match="nothing is left to happen"):
            on_client(body)

    @pytest.mark.parametrize(
        ("error", "ending"), [(None, "ended"), (NotSent("reset"), "NotSent")], ids=["quietly", "with an error"]
    )
    def test_open_watches_can_be_cut(self, error, ending):
        async def body(client: LocalClient) -> tuple[list[str], int]:
            endings: list[str] = []

            async def watch(resource: Any) -> None:
                try:
                    await collect(client.watch(resource, resource_version="0"), [])
                    endings.append("ended")
                except NotSent as caught:
                    endings.append(type(caught).__name__)

            tasks = [asyncio.create_task(watch(resource)) for resource in (PODS, PODS, NODES)]
            await asyncio.sleep(1)
            count = client.cut_watches(PODS, error)
            await asyncio.sleep(1)
            assert [task.done() for task in tasks] == [True, True, False]
            return endings, count

        assert on_client(body) == ([ending, ending], 2)


class TestFaultEffects:
    @pytest.mark.parametrize(
        ("effect", "error", "applied"),
        [
            pytest.param(effects.lost_answer(), OutcomeUnknown, True, id="lost answer"),
            pytest.param(effects.lost_answer(after=30), OutcomeUnknown, True, id="answer lost after 30 s"),
            pytest.param(effects.lost_request(), OutcomeUnknown, False, id="lost request"),
            pytest.param(effects.not_sent(), NotSent, False, id="not sent"),
            pytest.param(effects.conflict("no"), Conflict, False, id="409"),
            pytest.param(effects.not_found(), NotFound, False, id="404"),
            pytest.param(effects.too_many_requests(7), TooManyRequests, False, id="429"),
            pytest.param(effects.server_error(), ServerError, False, id="500"),
            pytest.param(effects.delay(5), None, True, id="late request"),
            pytest.param(effects.slow_answer(5), None, True, id="late answer"),
        ],
    )
    def test_a_bind_under_each_effect(self, effect: Effect, error: type[Exception] | None, applied: bool):
        faults = Faults()
        faults.add(Fault(effect, verb="bind"))

        async def body(client: LocalClient) -> None:
            uid = (await client.create(PODS, make_pod())).uid
            if error is None:
                await client.bind("pod", "default", uid, "n1")
            else:
                with pytest.raises(error):
                    await client.bind("pod", "default", uid, "n1")
            found = await client.get(PODS, "pod", "default")
            assert found.spec.node_name == ("n1" if applied else "")

        on_client(body, faults)

    def test_a_refusal_is_lost_with_the_answer(self):
        faults = Faults()
        faults.add(Fault(effects.lost_answer(), verb="bind"))

        async def body(client: LocalClient) -> None:
            with pytest.raises(OutcomeUnknown):
                await client.bind("no-such-pod", "default", "", "n1")

        on_client(body, faults)

    def test_the_seconds_to_wait_come_with_a_429(self):
        faults = Faults()
        faults.add(Fault(effects.too_many_requests(7), verb="list"))

        async def body(client: LocalClient) -> float | None:
            with pytest.raises(TooManyRequests) as caught:
                await client.list(PODS)
            return caught.value.retry_after

        assert on_client(body, faults) == 7

    @pytest.mark.parametrize(
        ("effect", "seen_at", "answered_at"),
        [(effects.delay(5), 5, 5), (effects.slow_answer(5), 0, 5)],
        ids=["late request", "late answer"],
    )
    def test_delays_pass_in_virtual_time(self, effect, seen_at, answered_at):
        faults = Faults()
        faults.add(Fault(effect, verb="create"))

        async def body(client: LocalClient) -> tuple[float, float]:
            loop = asyncio.get_running_loop()
            seen: list[float] = []
            client.store.watch(PODS).wake = lambda: seen.append(loop.time())
            await client.create(PODS, make_pod())
            return seen[0], loop.time()

        assert on_client(body, faults) == (seen_at, answered_at)

    @pytest.mark.parametrize("error", [None, NotSent("reset")], ids=["quietly", "with an error"])
    def test_a_watch_is_cut_after_so_many_events(self, error):
        faults = Faults()
        faults.add(Fault(effects.cut_watch(after=2, error=error), verb="watch"))

        async def body(client: LocalClient) -> int:
            for each in make_pods(5):
                await client.create(PODS, each)
            events: list[WatchEvent] = []
            try:
                await collect(client.watch(PODS, resource_version="0"), events)
                assert error is None
            except NotSent:
                assert error is not None
            return len(events)

        assert on_client(body, faults) == 2

    @pytest.mark.parametrize(
        ("effect", "error"),
        [
            (effects.gone(), Gone),
            (effects.lost_answer(), OutcomeUnknown),
            (effects.too_many_requests(), TooManyRequests),
        ],
        ids=["410", "no answer", "429"],
    )
    def test_a_watch_that_cannot_be_opened_leaves_nothing_behind(self, effect, error):
        faults = Faults()
        faults.add(Fault(effect, verb="watch"))

        async def body(client: LocalClient) -> None:
            with pytest.raises(error):
                await anext(client.watch(PODS, resource_version="0"))
            assert not client.store._table(PODS).listeners

        on_client(body, faults)

    def test_events_of_a_delayed_watch_come_late_and_in_order(self):
        faults = Faults()
        faults.add(Fault(effects.delay_events(60), verb="watch"))

        async def body(client: LocalClient) -> list[tuple[str, float]]:
            loop = asyncio.get_running_loop()
            arrived: list[tuple[str, float]] = []

            async def watch() -> None:
                async for event in client.watch(PODS, resource_version="0"):
                    arrived.append((event.object.name, loop.time()))

            watcher = asyncio.create_task(watch())
            await asyncio.sleep(1)
            for each in make_pods(3):
                await client.create(PODS, each)
                await asyncio.sleep(1)
            await asyncio.sleep(200)
            watcher.cancel()
            return arrived

        arrived = on_client(body, faults)
        assert [name for name, _ in arrived] == ["pod-0", "pod-1", "pod-2"]
        assert all(61 <= time <= 125 for _, time in arrived)


class TestSelectingCalls:
    @pytest.mark.parametrize(
        ("options", "hit"),
        [
            pytest.param({}, ["create a", "create b", "get a", "list"], id="every call"),
            pytest.param({"verb": "create"}, ["create a", "create b"], id="by verb"),
            pytest.param({"resource": NODES}, [], id="by resource"),
            pytest.param({"name": "a"}, ["create a", "get a"], id="by name"),
            pytest.param({"name": lambda name: name > "a"}, ["create b"], id="by a test of the name"),
            pytest.param({"times": 1}, ["create a"], id="once"),
            pytest.param({"times": 1, "skip": 2}, ["get a"], id="the third call"),
            pytest.param({"verb": "get", "name": "b"}, [], id="verb and name"),
        ],
    )
    def test_which_calls_are_hit(self, options: dict[str, Any], hit: list[str]):
        faults = Faults()
        fault = faults.add(Fault(effects.server_error(), **{"times": None, **options}))

        async def body(client: LocalClient) -> list[str]:
            calls = {
                "create a": client.create(PODS, make_pod("a")),
                "create b": client.create(PODS, make_pod("b")),
                "get a": client.get(PODS, "a", "default"),
                "list": client.list(PODS),
            }
            failed: list[str] = []
            for name, call in calls.items():
                try:
                    await call
                except ServerError:
                    failed.append(name)
                except ApiError:
                    pass
            return failed

        assert on_client(body, faults) == hit
        assert fault.hits == len(hit)

    def test_a_chance_hits_some_calls_the_same_ones_each_time(self):
        def failures() -> list[int]:
            faults = Faults(random.Random(5))
            faults.add(Fault(effects.not_sent(), chance=0.3, times=None))

            async def body(client: LocalClient) -> list[int]:
                answers = await asyncio.gather(*(client.list(PODS) for _ in range(100)), return_exceptions=True)
                return [number for number, answer in enumerate(answers) if isinstance(answer, NotSent)]

            failed: list[int] = on_client(body, faults)
            return failed

        assert failures() == failures()
        assert 15 < len(failures()) < 45

    def test_a_chance_without_randomness_is_refused(self):
        with pytest.raises(ValueError, match="needs Faults"):
            Faults().add(Fault(effects.not_sent(), chance=0.5))

    def test_healing_ends_all_faults_and_keeps_the_log(self):
        faults = Faults()
        faults.add(Fault(effects.not_sent(), times=None))

        async def body(client: LocalClient) -> None:
            with pytest.raises(NotSent):
                await client.list(PODS)
            faults.clear()
            await client.list(PODS)

        on_client(body, faults)
        assert len(faults.calls) == 2

    def test_the_log_tells_verb_key_and_time(self):
        faults = Faults()

        async def body(client: LocalClient) -> None:
            created = await client.create(PODS, make_pod("a"))
            await asyncio.sleep(5)
            await client.bind("a", "default", created.uid, "n1")
            await client.patch(PODS, "a", {}, namespace="default", subresource="status")
            await client.list(NODES)

        on_client(body, faults)
        assert [(c.verb, str(c.resource), c.key, c.time, c.subresource) for c in faults.calls] == [
            ("create", "pods", "default/a", 0, ""),
            ("bind", "pods", "default/a", 5, ""),
            ("patch", "pods", "default/a", 5, "status"),
            ("list", "nodes", "", 5, ""),
        ]
        assert [call.key for call in faults.calls_of("bind")] == ["default/a"]
        assert faults.calls_of("list", PODS) == []


def test_a_run_is_the_same_for_the_same_seed_and_differs_between_seeds():
    async def body(client: LocalClient) -> list[str]:
        order: list[str] = []

        async def life(name: str) -> None:
            created = await client.create(PODS, make_pod(name))
            order.append(f"created {name}")
            await client.bind(name, "default", created.uid, "n1")
            order.append(f"bound {name}")

        await asyncio.gather(*(life(name) for name in "abcd"))
        return order

    assert on_client(body, seed=1) == on_client(body, seed=1)
    assert len({tuple(on_client(body, seed=seed)) for seed in range(10)}) > 5


def test_the_reader_names_the_form_of_what_it_reads():
    async def body(client: LocalClient) -> None:
        await client.create(PODS, pod("a", hostname="not in the record"))
        plain = replace(PODS, type=Unstructured)
        read, listed = await client.get(plain, "a", "default"), await client.list(plain)
        async with aclosing(client.watch(plain, resource_version="0")) as watch:  # type: ignore[type-var]
            watched = await anext(watch)
        for obj in (read, listed.items[0], watched.object):
            assert obj.get("spec", "hostname") == "not in the record"
        assert isinstance(await client.get(PODS, "a", "default"), Pod)

    on_client(body)
