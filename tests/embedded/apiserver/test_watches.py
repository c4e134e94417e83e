"""Watches over HTTP, under virtual time."""

import asyncio
import json

import pytest

from moorage.embedded.apiserver.app import ServerLimits
from tests.embedded import wire_faults
from tests.embedded.apiserver.kit import NODES, PODS, World, node, pod, serve
from tests.embedded.wire_faults import WireFault

INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


def short(event) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def patch(world: World, name: str, **labels: str | None) -> None:
    merge = {"content-type": "application/merge-patch+json"}
    reply = await world.ask("PATCH", f"{PODS}/{name}", {"metadata": {"labels": labels}}, headers=merge)
    assert reply.status == 200, reply.body


def test_a_watch_shows_what_is_there_and_what_happens():
    async def scenario(world: World):
        created = await world.create(PODS, pod("a"))
        async with world.watch(PODS) as watch:
            assert (watch.status, watch.headers["content-type"]) == (200, "application/json")
            assert "content-length" not in watch.headers
            assert await watch.next() == {"type": "ADDED", "object": created}
            await world.create(PODS, pod("b"))
            await patch(world, "b", x="y")
            await world.ask("DELETE", f"{PODS}/b")
            events = await watch.take(3)
            assert [short(event) for event in events] == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
            versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
            assert versions == sorted(set(versions))
            assert await watch.idle()

    serve(scenario)


@pytest.mark.parametrize("path", [PODS, "/api/v1/pods", "/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods"])
def test_a_watch_goes_on_from_a_version(path: str):
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        version = (await world.get(PODS))["metadata"]["resourceVersion"]
        await world.create(PODS, pod("b"))
        async with world.watch(path, resourceVersion=version) as watch:
            assert short(await watch.next()) == ("ADDED", "b")
            assert await watch.idle()

    serve(scenario)


def test_one_object_is_watched_by_its_path():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        await world.create(PODS, pod("b"))
        async with world.watch("/api/v1/watch/namespaces/default/pods/b") as watch:
            assert short(await watch.next()) == ("ADDED", "b")
            assert await watch.idle()

    serve(scenario)


def test_objects_enter_and_leave_a_selection():
    async def scenario(world: World):
        version = str(world.store.version)
        async with world.watch(PODS, resourceVersion=version, labelSelector="x=1") as watch:
            await world.create(PODS, pod("a"))
            await patch(world, "a", x="1")
            await patch(world, "a", y="2")
            await patch(world, "a", x=None)
            events = [short(event)[0] for event in await watch.take(3)]
            assert events == ["ADDED", "MODIFIED", "DELETED"]

    serve(scenario)


def test_a_streaming_list_ends_with_a_marked_bookmark_and_goes_on():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        version = str(world.store.version)
        async with world.watch(PODS, **INITIAL) as watch:
            assert short(await watch.next()) == ("ADDED", "a")
            mark = await watch.next()
            assert mark["type"] == "BOOKMARK"
            assert mark["object"]["kind"] == "Pod"
            assert mark["object"]["metadata"]["resourceVersion"] == version
            assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            await world.create(PODS, pod("b"))
            assert short(await watch.next()) == ("ADDED", "b")

    serve(scenario)


def test_a_watch_may_begin_without_what_is_there():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        options = {**INITIAL, "sendInitialEvents": "false"}
        async with world.watch(PODS, **options) as watch:
            await world.create(PODS, pod("b"))
            assert short(await watch.next()) == ("ADDED", "b")

    serve(scenario)


def test_bookmarks_come_every_minute_to_those_who_asked():
    async def scenario(world: World):
        async with world.watch(PODS, allowWatchBookmarks="true") as watch, world.watch(PODS) as plain:
            await world.create(NODES, node())
            first = await watch.next()
            assert (first["type"], world.clock.now()) == ("BOOKMARK", 60)
            assert first["object"]["metadata"]["resourceVersion"] == str(world.store.version)
            await watch.next()
            assert world.clock.now() == 120
            assert await plain.idle(300)

    serve(scenario)


def test_a_watch_sends_bookmarks_two_seconds_before_its_end_and_at_it():
    async def scenario(world: World):
        async with world.watch(PODS, timeoutSeconds="7", allowWatchBookmarks="true") as watch:
            assert (await watch.next())["type"] == "BOOKMARK"
            assert world.clock.now() == 5
            assert [event["type"] for event in await watch.rest()] == ["BOOKMARK"]
            assert world.clock.now() == 7
        async with world.watch(PODS, timeoutSeconds="7") as watch:
            assert await watch.rest() == []
        assert world.app.watches == 0

    serve(scenario)


def test_a_version_that_is_too_old_is_a_410_at_the_door():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        world.store.compact()
        await world.create(PODS, pod("b"))
        reply = await world.ask("GET", PODS, watch="true", resourceVersion="2")
        assert (reply.status, reply.json["reason"]) == (410, "Expired")
        assert "too old resource version" in reply.json["message"]

    serve(scenario)


def test_a_slow_watcher_gets_every_event_or_a_410_at_its_end():
    """The connection takes 64 KiB unread; the watcher may then fall 50 changes behind."""

    async def scenario(world: World):
        async with world.watch(PODS, resourceVersion=str(world.store.version)) as slow:
            for number in range(400):
                await world.create(PODS, pod(f"p{number:03}"))
            events = await slow.rest()
            *seen, last = events
            assert [event["object"]["metadata"]["name"] for event in seen] == [
                f"p{number:03}" for number in range(len(seen))
            ]
            assert 50 < len(seen) < 400
            assert last["type"] == "ERROR"
            assert (last["object"]["code"], last["object"]["reason"]) == (410, "Expired")
        assert world.app.watches == 0

    serve(scenario, limits=ServerLimits(watch_buffer=50))


def test_a_watcher_behind_the_history_gets_a_410_too():
    async def scenario(world: World):
        async with world.watch(PODS, resourceVersion=str(world.store.version)) as slow:
            for number in range(400):
                await world.create(PODS, pod(f"p{number:03}"))
            *_, last = await slow.rest()
            assert (last["type"], last["object"]["code"]) == ("ERROR", 410)

    serve(scenario, history_limit=100)


def test_a_watch_of_a_client_that_is_gone_is_cleaned_up():
    async def scenario(world: World):
        for _ in range(50):
            async with world.watch(PODS) as watch:
                assert watch.status == 200
        await asyncio.sleep(0.1)
        assert world.app.watches == 0

    serve(scenario)


def test_a_connection_that_breaks_ends_the_watch_on_both_sides():
    async def scenario(world: World):
        world.faults.add(WireFault(wire_faults.cut(10, quietly=True), watch=True))
        await world.create(PODS, pod("a"))
        async with world.watch(PODS) as watch:
            assert await watch.next() is None  # half a line is no event
        await asyncio.sleep(0.1)
        assert world.app.watches == 0

    serve(scenario)


def test_the_number_of_watches_is_limited():
    async def scenario(world: World):
        async with world.watch(PODS), world.watch(PODS):
            reply = await world.ask("GET", PODS, watch="true")
            assert (reply.status, reply.headers["retry-after"]) == (429, "5")
        await asyncio.sleep(0.1)
        async with world.watch(PODS) as watch:
            assert watch.status == 200

    serve(scenario, limits=ServerLimits(watches=2))


def test_closing_the_server_ends_watches_after_their_last_events():
    async def scenario(world: World):
        async with world.watch(PODS) as watch:
            await world.create(PODS, pod("a"))
            world.app.close()
            assert [short(event) for event in await watch.rest()] == [("ADDED", "a")]

    serve(scenario)


def test_watched_tables_carry_their_columns_once():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        await world.create(PODS, pod("b"))
        accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        reply = await world.ask("GET", PODS, headers=accept, watch="true", timeoutSeconds="1")
        first, second = (json.loads(line) for line in reply.body.splitlines())
        assert first["object"]["columnDefinitions"][0]["name"] == "Name"
        assert first["object"]["rows"][0]["cells"][0] == "a"
        assert not second["object"]["columnDefinitions"]

    serve(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_many_watchers_get_every_event_in_order(seed: int):
    async def scenario(world: World):
        start = str(world.store.version)
        seen: list[list[int]] = []

        async def follow() -> None:
            versions: list[int] = []
            seen.append(versions)
            async with world.watch(PODS, resourceVersion=start, timeoutSeconds="5") as watch:
                versions += [int(e["object"]["metadata"]["resourceVersion"]) for e in await watch.rest()]

        async def write(worker: int) -> None:
            for number in range(20):
                await world.create(PODS, pod(f"w{worker}-{number}"))
                await patch(world, f"w{worker}-{number}", x="y")

        await asyncio.gather(*(follow() for _ in range(20)), *(write(worker) for worker in range(4)))
        expected = list(range(int(start) + 1, world.store.version + 1))
        assert len(expected) == 160
        assert seen == [expected] * 20

    serve(scenario, seed=seed)
