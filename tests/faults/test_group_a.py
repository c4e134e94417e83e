"""Group A of the fault cases: lists and watches, byte by byte, from the API server to the scheduler's cache.

What a single informer does with each answer is in tests/client/test_reflector.py; the network itself in
tests/client/test_aiohttp_transport.py.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from moorage.api.resources import NODES, PODS
from moorage.client import reflector
from moorage.client.informers import FIELD_SELECTORS, Informer
from moorage.framework.ports import Change
from moorage.testing import make_node, make_pod
from tests.embedded import wire_faults as wire
from tests.faults.world import HttpCluster, is_list_of, is_watch_of, version_of

MODES = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "paged"])


def a_cluster(**options: Any) -> HttpCluster:
    """Running, with a node and nothing wrong yet."""
    cluster = HttpCluster(**options)
    cluster.add(make_node("a"))
    cluster.settle(2)
    return cluster


def proves_alive(cluster: HttpCluster, name: str = "proof", seconds: float = 40.0) -> None:
    """A new pod is placed, and cache, queue and API agree."""
    cluster.add(make_pod(name))
    cluster.settle(seconds)
    assert cluster.node_of(name) != ""
    cluster.check()


def watches_of(cluster: HttpCluster, plural: str, since: float = 0.0) -> list[Any]:
    return cluster.sent("GET", f"/{plural}", watch=True, since=since)


def lists_of(cluster: HttpCluster, plural: str, since: float = 0.0) -> list[Any]:
    return [
        *cluster.sent("GET", f"/{plural}", watch=False, since=since),
        *(sent for sent in watches_of(cluster, plural, since) if "sendInitialEvents" in sent.request.query),
    ]


@MODES
def test_a1_the_server_is_away_at_the_start(streaming):
    cluster = HttpCluster(streaming=streaming, start=False)
    with cluster:
        cluster.transport.down = True
        starting = cluster.loop.create_task(cluster.scheduler.start())
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(100)
        assert not starting.done(), "not ready before everything is synced"
        assert not any(status.synced for status in cluster.scheduler.informers.status())
        times = [sent.time for sent in cluster.sent("GET", "/api/v1/nodes")]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert 0.8 <= pauses[0] <= 1.6
        assert max(pauses) <= 60.0
        assert len(times) < 10
        assert cluster.binds() == []
        cluster.transport.down = False
        cluster.settle(70)
        assert starting.done()
        assert cluster.node_of("p") == "a"


@MODES
def test_a2_the_server_is_away_for_ten_minutes(streaming):
    with a_cluster(streaming=streaming) as cluster:
        cluster.add(make_pod("big", requests={"cpu": "100"}))
        cluster.settle(1)
        cluster.transport.down = True
        cluster.transport.cut()
        began = cluster.clock.now()
        cluster.settle(600)
        assert cluster.informer(NODES).count == 1
        assert len(cluster.scheduler.engine.queue) == 1, "the pending pod is kept"
        assert len(watches_of(cluster, "nodes", began)) < 30
        cluster.transport.down = False
        back = cluster.clock.now()
        proves_alive(cluster, seconds=61)
        assert not lists_of(cluster, "nodes", began), "no storm of lists"
        assert watches_of(cluster, "nodes", back)[0].time - back <= 60


@MODES
def test_a3_a_clean_end_of_the_watch(streaming):
    with a_cluster(streaming=streaming) as cluster:
        began = cluster.clock.now()
        assert cluster.transport.cut(quietly=True) > 10
        cluster.settle(0.1)
        (again,) = watches_of(cluster, "nodes", began)
        assert version_of(again.request) == cluster.informer(NODES).version
        assert not lists_of(cluster, "nodes", began)
        assert [len(cluster.accounted())] == [1]
        proves_alive(cluster)


@pytest.mark.parametrize("bytes_", [1, 50, 150])
@pytest.mark.parametrize("quietly", [True, False], ids=["EOF", "reset"])
def test_a4_a_watch_cut_inside_a_line(bytes_, quietly):
    with a_cluster() as cluster:
        cluster.spoil(wire.cut(bytes_, quietly=quietly), **is_watch_of("pods"))
        cluster.transport.cut(quietly=True)
        cluster.settle(1)
        before = cluster.informer(PODS).version
        began = cluster.clock.now()
        cluster.add(make_pod("p"))
        cluster.settle(5)
        assert cluster.node_of("p") == "a"
        resumed = watches_of(cluster, "pods", began)[0]
        assert version_of(resumed.request) == before, "after the last complete event"
        assert not lists_of(cluster, "pods", began)
        cluster.check()


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (7, 1, 90), (65536,)], ids=str)
def test_a5_chunks_of_any_size(sizes):
    """Also inside characters of several bytes."""
    with HttpCluster() as cluster:
        cluster.transport.cut(quietly=True)
        cluster.spoil(wire.split(*sizes), watch=True, times=None)
        label = {"name": "höchste-Ebene-日本-🚢"}
        cluster.add(make_node("a", annotations=label), *(make_pod(f"p{i}", annotations=label) for i in range(5)))
        cluster.settle(5)
        assert len(cluster.bound()) == 5
        node = cluster.scheduler.informers.informers[NODES].objects["a"]
        assert node.annotations == label
        cluster.check()


GONE = json.dumps(
    {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}
).encode()
GONE_LINE = b'{"type":"ERROR","object":' + GONE + b"}\n"


@MODES
@pytest.mark.parametrize("effect", [wire.answer(410, GONE), wire.answer(200, GONE_LINE)], ids=["A6", "A7"])
def test_a6_a7_the_version_is_gone(effect, streaming):
    """As a status of the watch, and as an event inside of it."""
    with a_cluster(streaming=streaming) as cluster:
        known = cluster.informer(NODES).version
        cluster.spoil(effect, **is_watch_of("nodes"))
        began = cluster.clock.now()
        cluster.transport.cut(quietly=True)
        cluster.settle(10)
        listed = lists_of(cluster, "nodes", began)
        assert version_of(listed[0].request) == known, "never older than what is known"
        assert cluster.informer(NODES).last_error == ""
        assert list(cluster.scheduler.informers.informers[NODES].objects) == ["a"]
        proves_alive(cluster)


@MODES
def test_a6_the_list_at_that_version_is_gone_too(streaming):
    with a_cluster(streaming=streaming) as cluster:
        cluster.spoil(wire.answer(410, GONE), **is_watch_of("nodes"))
        cluster.spoil(wire.answer(410, GONE), **(is_watch_of if streaming else is_list_of)("nodes"))
        began = cluster.clock.now()
        cluster.transport.cut(quietly=True)
        cluster.settle(10)
        assert version_of(lists_of(cluster, "nodes", began)[-1].request) == "", "the current state"
        proves_alive(cluster)


def test_a8_a_page_token_that_is_too_old():
    with HttpCluster(streaming=False, start=False) as cluster:
        cluster.add(*(make_node(f"n{i:04}") for i in range(1200)))
        cluster.spoil(wire.answer(410, GONE), skip=1, **is_list_of("nodes"))
        cluster.start()
        first, second, whole = cluster.sent("GET", "/nodes", watch=False)
        assert "continue" not in first.request.query
        assert "continue" in second.request.query
        assert "limit" not in whole.request.query, "never two snapshots joined"
        assert cluster.informer(NODES).count == 1200
        proves_alive(cluster)


@MODES
def test_a9_a_replica_that_lags_behind(streaming):
    too_large = {
        "kind": "Status",
        "code": 504,
        "reason": "Timeout",
        "message": "Too large resource version: 99, current: 7",
        "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
    }
    with a_cluster(streaming=streaming) as cluster:
        cluster.spoil(wire.answer(504, json.dumps(too_large).encode()), **is_watch_of("nodes"))
        began = cluster.clock.now()
        cluster.transport.cut(quietly=True)
        cluster.settle(10)
        assert version_of(lists_of(cluster, "nodes", began)[0].request) == ""
        proves_alive(cluster)


@MODES
def test_a10_objects_that_are_gone_after_an_outage_are_given_up(streaming):
    """Objects that the backup does not have are gone; what was assumed there is not kept."""
    with a_cluster(streaming=streaming) as cluster:
        cluster.add(make_node("b"), make_pod("lost", node="b"), make_pod("kept", node="a"))
        cluster.settle(2)
        assert cluster.accounted() == {"a": ["default/kept"], "b": ["default/lost"]}
        with cluster_paused(cluster):
            cluster.store.delete(PODS, "lost", namespace="default", grace_period=0)
            cluster.store.delete(NODES, "b")
            cluster.store.compact()
        cluster.settle(40)
        assert cluster.accounted() == {"a": ["default/kept"]}
        assert "b" not in cluster.scheduler.informers.informers[NODES].objects
        proves_alive(cluster)


class cluster_paused:  # noqa: N801 (reads as a statement)
    """No connection inside."""

    def __init__(self, cluster: HttpCluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> None:
        self._cluster.transport.down = True
        self._cluster.transport.cut()
        self._cluster.settle(5)

    def __exit__(self, *_: object) -> None:
        self._cluster.transport.down = False


@MODES
@pytest.mark.parametrize(
    ("status", "headers", "least", "most"),
    [
        (429, {"retry_after": "7"}, 7.0, 8.0),
        (503, {"retry_after": "7"}, 7.0, 8.0),
        (429, {}, 0.8, 1.6),
        (503, {}, 0.8, 1.6),
        (429, {"retry_after": "garbage"}, 0.8, 1.6),
        (429, {"retry_after": "Thu, 01 Jan 2026 00:00:20 GMT"}, 10.0, 21.0),
        (429, {"retry_after": "1000000000"}, 60.0, 62.0),
    ],
)
def test_a11_a12_a_busy_server_is_given_time(status, headers, least, most, streaming):
    """The date is twenty seconds after the clock's zero."""
    with a_cluster(streaming=streaming) as cluster:
        cluster.spoil(wire.answer(status, b"", **headers), **is_watch_of("nodes"))
        began = cluster.clock.now()
        cluster.transport.cut(quietly=True)
        cluster.settle(70)
        first, second, *_ = watches_of(cluster, "nodes", began)
        assert least <= second.time - first.time <= most
        assert not lists_of(cluster, "nodes", began)
        proves_alive(cluster)


def test_a13_500_again_and_again_on_the_watch():
    with a_cluster() as cluster:
        cluster.spoil(wire.answer(500), times=3, **is_watch_of("nodes"))
        began = cluster.clock.now()
        cluster.transport.cut(quietly=True)
        cluster.settle(30)
        assert len(lists_of(cluster, "nodes", began)) == 1, "then the version itself is doubted"
        proves_alive(cluster)


@pytest.mark.parametrize("status", [401, 403])
def test_a14_credentials_are_refused_for_a_while(status):
    with a_cluster() as cluster:
        cluster.spoil(wire.answer(status), times=None)
        cluster.transport.cut()
        began = cluster.clock.now()
        cluster.settle(300)
        assert cluster.informer(NODES).count == 1, "the cache is kept"
        assert str(status) in cluster.informer(NODES).last_error
        assert len(watches_of(cluster, "nodes", began)) < 20
        cluster.wire.clear()
        cluster.settle(130)  # one backoff, and a bookmark that tells that all is well
        assert cluster.informer(NODES).last_error == ""
        proves_alive(cluster)


def test_a15_a_watch_that_hangs_is_begun_anew():
    """No bytes come any more and the connection is not closed; the server had been sending bookmarks."""
    with a_cluster() as cluster:
        cluster.settle(130)  # two bookmarks
        cluster.spoil(wire.stall(0), **is_watch_of("nodes"))
        cluster.transport.cut(quietly=True)
        cluster.settle(1)
        began = cluster.clock.now()
        cluster.add(make_node("b"))
        cluster.settle(reflector.IDLE - 10)
        assert "b" not in cluster.scheduler.informers.informers[NODES].objects
        cluster.settle(20)
        assert "b" in cluster.scheduler.informers.informers[NODES].objects
        assert not lists_of(cluster, "nodes", began)
        proves_alive(cluster)


def test_a19_a_streaming_list_cut_before_its_end_changes_nothing():
    with HttpCluster(start=False) as cluster:
        cluster.add(*(make_node(f"n{i}") for i in range(50)))
        cluster.spoil(wire.cut(2000), times=2, **is_watch_of("nodes"))
        cluster.start()
        assert cluster.informer(NODES).count == 50
        assert len(watches_of(cluster, "nodes")) == 3
        proves_alive(cluster)


def test_a19_later_too():
    """A relist that breaks off must not delete what had not been sent yet."""
    with a_cluster() as cluster:
        cluster.add(*(make_node(f"n{i}") for i in range(50)))
        cluster.settle(2)
        cluster.spoil(wire.answer(410, GONE), **is_watch_of("nodes"))
        cluster.spoil(wire.cut(2000), skip=1, **is_watch_of("nodes"))
        cluster.transport.cut(quietly=True)
        cluster.settle(1.5)
        assert cluster.informer(NODES).count == 51
        cluster.settle(20)
        assert cluster.informer(NODES).count == 51
        proves_alive(cluster)


@pytest.mark.parametrize("status", [400, 422])
def test_a20_streaming_lists_are_refused(status):
    with HttpCluster(start=False) as cluster:
        cluster.add(make_node("a"))
        cluster.spoil(
            wire.answer(status), path=lambda path: True, watch=True, times=15
        )  # as many as there are informers
        cluster.start()
        assert len(cluster.sent("GET", "/api/v1/nodes", watch=False)) == 1
        proves_alive(cluster)


def test_a21_never_resume_from_one_of_the_initial_events():
    with HttpCluster(start=False) as cluster:
        cluster.add(*(make_node(f"n{i}") for i in range(20)))
        cluster.spoil(wire.cut(3000), **is_watch_of("nodes"))
        cluster.start()
        _, again = watches_of(cluster, "nodes")[:2]
        assert version_of(again.request) == ""
        assert "sendInitialEvents" in again.request.query
        assert cluster.informer(NODES).count == 20


def test_a23_a_pod_before_its_node_and_a_node_gone_before_its_pods():
    with a_cluster() as cluster:
        cluster.add(make_pod("early", node="late", requests={"cpu": "3"}))
        cluster.settle(2)
        cluster.add(make_node("late"))
        cluster.settle(2)
        assert cluster.accounted()["late"] == ["default/early"]
        cluster.store.delete(NODES, "late")
        cluster.settle(2)
        cluster.add(make_pod("two", requests={"cpu": "3"}), make_pod("three", requests={"cpu": "3"}))
        cluster.settle(2)
        assert sorted(cluster.bound().values()) == ["a", "late"], "one fits, and the ghost takes nobody"
        cluster.add(make_node("late"))
        cluster.settle(20)
        assert cluster.accounted()["late"] == ["default/early"], "counted when the node returns"
        assert cluster.pending() != []
        cluster.validate()


@MODES
@pytest.mark.parametrize("was_bound", [True, False], ids=["bound", "pending"])
def test_a24_recreated_under_the_same_name_in_a_gap(was_bound, streaming):
    with a_cluster(streaming=streaming) as cluster:
        big: dict[str, Any] = {} if was_bound else {"requests": {"cpu": "100"}}
        cluster.add(make_pod("p", uid="one", node="a" if was_bound else "", **big))
        cluster.settle(2)
        with cluster_paused(cluster):
            cluster.store.delete(PODS, "p", namespace="default", grace_period=0)
            cluster.add(make_pod("p", uid="two"))
            cluster.store.compact()
        cluster.settle(40)
        assert cluster.the("p").uid == "two"
        assert cluster.node_of("p") == "a"
        cached = [pod.uid for pod in cluster.scheduler.engine.cache.pods_on("a")]
        assert cached == ["two"]
        assert len(cluster.scheduler.engine.queue) == 0
        cluster.check()


@MODES
@pytest.mark.parametrize("place", ["queued", "bound"])
def test_a25_a_delete_that_no_watch_delivered(place, streaming):
    with a_cluster(streaming=streaming) as cluster:
        big: dict[str, Any] = {"requests": {"cpu": "100"}} if place == "queued" else {"node": "a"}
        cluster.add(make_pod("p", **big))
        cluster.settle(2)
        with cluster_paused(cluster):
            cluster.store.delete(PODS, "p", namespace="default", grace_period=0)
            cluster.store.compact()
        cluster.settle(40)
        assert len(cluster.scheduler.engine.queue) == 0
        assert len(list(cluster.scheduler.engine.cache.pods())) == 0
        proves_alive(cluster)


STRANGE = (
    b'{"type":"RENAMED","object":{"kind":"Node","metadata":{"name":"x"}}}\n'
    b'{"type":"ADDED","object":null}\n'
    b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"x","resourceVersion":"99999"}}}\n'
    b'{"type":"ADDED","object":{"kind":"Table","rows":[]}}\n'
    b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"after","uid":"u","resourceVersion":"%d"}}}\n'
)


def test_a26_events_that_make_no_sense_are_skipped():
    with a_cluster() as cluster:
        version = int(cluster.informer(NODES).version) + 1
        cluster.spoil(wire.answer(200, STRANGE % version), **is_watch_of("nodes"))
        cluster.transport.cut(quietly=True)
        cluster.settle(0.5)
        assert set(cluster.scheduler.informers.informers[NODES].objects) == {"a", "after"}
        assert cluster.informer(NODES).version == str(version)


@pytest.mark.parametrize(
    "body",
    [b"this is no JSON\n", b'{"type":"ADDED","object":{"kind":"Node"\n', b"<html>\n"],
    ids=["text", "half an object", "page"],
)
def test_a26_lines_that_are_no_events_lead_to_a_list_in_the_end(body):
    with a_cluster() as cluster:
        cluster.spoil(wire.answer(200, body), times=3, **is_watch_of("nodes"))
        began = cluster.clock.now()
        cluster.transport.cut(quietly=True)
        cluster.settle(60)
        assert len(lists_of(cluster, "nodes", began)) == 1
        proves_alive(cluster)


@MODES
def test_a27_one_malformed_object_among_many(streaming):
    with HttpCluster(start=False, streaming=streaming) as cluster:
        cluster.add(*(make_node(f"n{i:04}") for i in range(1000)))
        broken = cluster.store.get(NODES, "n0500").raw
        cluster.store.delete(NODES, "n0500")
        cluster.store.load(NODES, {**broken, "status": {**broken["status"], "allocatable": {"cpu": "lots"}}})
        cluster.start()
        status = cluster.informer(NODES)
        assert (status.count, status.malformed, status.synced) == (999, 1, True)
        lists = len(lists_of(cluster, "nodes"))
        cluster.settle(300)
        assert len(lists_of(cluster, "nodes")) == lists, "never listed again for its sake"
        proves_alive(cluster)


@pytest.mark.parametrize("change", [{"name": ""}, {"name": "50%"}, {"namespace": ""}], ids=ascii)
def test_a27_a_pod_under_whose_name_nothing_can_be_written(change, caplog):
    """It is never tried, so that no status is to be written for it, again and again with a traceback each."""
    meta = {"name": "odd", "namespace": "default", "uid": "u", "resourceVersion": "1", **change}
    body = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": meta}]}
    with HttpCluster(start=False, streaming=False) as cluster:
        cluster.add(make_node("n"))
        cluster.spoil(wire.answer(200, json.dumps(body).encode()), **is_list_of("pods"))
        cluster.start()
        cluster.settle(700)
        assert cluster.informer(PODS).malformed == 1
        complaints = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [record.getMessage() for record in complaints] == ["Object ignored until it can be read"]
        assert not any(record.exc_info for record in complaints)
        proves_alive(cluster)


def test_a28_a_large_list_leaves_the_loop_turns():
    """Objects of 3 MiB, and 30 MB of them: all arrive, in slices."""
    with HttpCluster(start=False) as cluster:
        for i in range(10):
            cluster.add(make_node(f"n{i}", annotations={"big": "x" * 3 * 2**20}))
        cluster.start()
        assert cluster.informer(NODES).count == 10
        proves_alive(cluster)


@MODES
def test_a29_a_list_that_trickles(streaming):
    with HttpCluster(start=False, streaming=streaming) as cluster:
        cluster.add(*(make_node(f"n{i}") for i in range(20)))
        which = is_watch_of("nodes") if streaming else is_list_of("nodes")
        cluster.spoil(wire.Effect(split=(1,), chunk_delay=0.0, stall_after=500), **which)
        starting = cluster.loop.create_task(cluster.scheduler.start())
        cluster.settle(60)
        assert not starting.done()
        cluster.settle(700)
        assert starting.done()
        assert cluster.informer(NODES).count == 20


def test_a30_watches_that_always_fail_at_once():
    with a_cluster() as cluster:
        cluster.spoil(wire.answer(200, b""), path="/nodes", watch=True, times=None, skip=0)
        cluster.transport.cut(quietly=True)
        cluster.settle(120)
        began = cluster.clock.now()
        cluster.settle(600)
        assert len(cluster.sent("GET", "/api/v1/nodes", since=began)) / 600 <= 0.22
        cluster.wire.clear()
        proves_alive(cluster, seconds=70)


@MODES
@pytest.mark.parametrize(
    "effect",
    [
        wire.answer(200, b"<html><body>Sign in</body></html>", content_type="text/html"),
        wire.answer(302, b"", location="https://login.example.com/"),
        wire.answer(200, b'{"kind":"Table","rows":[]}'),
        wire.answer(200, b"\x1f\x8b\x08", content_encoding="gzip"),
    ],
    ids=["A31 page", "A31 redirect", "table", "A28 compressed"],
)
def test_a31_answers_of_another_server(effect, streaming):
    with HttpCluster(start=False, streaming=streaming) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.spoil(effect, path="/nodes", times=4)
        starting = cluster.loop.create_task(cluster.scheduler.start())
        cluster.settle(0.5)
        assert cluster.informer(NODES).last_error != ""
        assert not starting.done()
        cluster.settle(60)
        assert starting.done()
        assert cluster.node_of("p") == "a"
        assert {sent.request.path.split("/")[1] for sent in cluster.wire.log} <= {"api", "apis"}


@MODES
def test_a32_compacted_while_the_watch_was_paused(streaming):
    with a_cluster(streaming=streaming) as cluster:
        cluster.add(make_node("b"), make_pod("on-b", node="b"))
        cluster.settle(2)
        with cluster_paused(cluster):
            cluster.settle(360)
            cluster.store.delete(PODS, "on-b", namespace="default", grace_period=0)
            cluster.store.delete(NODES, "b")
            cluster.add(make_node("c"))
            cluster.store.compact()
        cluster.settle(70)
        assert sorted(cluster.scheduler.informers.informers[NODES].objects) == ["a", "c"]
        assert cluster.informer(PODS).count == 0
        proves_alive(cluster)


def test_a33_more_events_than_the_scheduler_can_take():
    """The receiver stands still while 10,000 events arrive: what waits is bounded, the last state wins."""
    with HttpCluster(start=False) as cluster:
        informers = cluster.scheduler.informers
        held = [0]
        delivered = []
        inbox = cluster.scheduler.engine.inbox.post

        def deliver(change: Change) -> None:
            delivered.append(change)
            inbox(change)

        informers.informers[PODS] = Informer(
            cluster.http,
            PODS,
            deliver,
            clock=cluster.clock,
            random=cluster.random,
            field_selector=FIELD_SELECTORS[PODS],
            use_streaming_list=True,
            on_served=cluster.scheduler.engine.inbox.post,
            backlog=lambda: held[0],
        )
        cluster.add(make_node("a"))
        cluster.start()
        cluster.settle(2)
        held[0] = reflector.BACKLOG + 1
        cluster.add(make_pod("busy", node="a"))
        for turn in range(10_000):
            patch = {"metadata": {"labels": {"turn": str(turn)}}}
            cluster.store.patch(PODS, "busy", patch, namespace="default")
            if turn % 100 == 99:
                cluster.settle(0.1)
        assert len(delivered) <= reflector.SLICE, "reading has stopped"
        held[0] = 0
        cluster.settle(120)
        versions = [int(change.new.resource_version) for change in delivered if change.new is not None]
        assert versions == sorted(versions), "in order"
        assert informers.informers[PODS].objects["default/busy"].labels == {"turn": "9999"}
        assert cluster.informer(PODS).held_up > 4
        proves_alive(cluster)


def test_a_kind_that_the_server_lacks_is_warned_about_once(caplog):
    with HttpCluster(start=False) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.spoil(wire.answer(404), path="/csidrivers", times=None)
        cluster.start()
        cluster.settle(300)
        assert cluster.node_of("p") == "a"
        warnings = [record for record in caplog.records if "does not serve this kind" in record.getMessage()]
        assert len(warnings) == 1
