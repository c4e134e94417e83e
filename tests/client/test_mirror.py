"""The informer's view: what each event and listing changes, and what becomes of unreadable objects."""

import pytest
from msgspec.structs import replace

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node, NodeStatus
from moorage.api.resources import NODES, PODS, Resource
from moorage.client.informers import Mirror
from moorage.framework.ports import ADDED, DELETED, MODIFIED, Change, Malformed, WatchEvent
from tests.client.scripted import GONE, HOLD, Page, Stream, added, deleted, follow, modified, pod, tell


def node(name: str, version: str = "1", cpu: str = "4", uid: str = "") -> Node:
    meta = ObjectMeta(name=name, uid=uid or f"uid-{name}", resource_version=version)
    return Node(metadata=meta, status=NodeStatus(allocatable={"cpu": cpu}))


class RecordedMirror:
    """A mirror and what it delivered."""

    def __init__(self, resource: Resource) -> None:
        self.changes: list[Change] = []
        self.mirror = Mirror(resource, self.changes.append, lambda problem: None)

    def by(self, *events: WatchEvent) -> list[str]:
        self.changes.clear()
        for event in events:
            self.mirror.apply(event)
        return [tell(change) for change in self.changes]


@pytest.mark.parametrize(
    ("events", "deliveries"),
    [
        pytest.param([added("a", "2"), added("a", "2")], ["+a"], id="the same event twice"),
        pytest.param([modified("a", "2")], ["+a"], id="update of an unknown object"),
        pytest.param([deleted("a", "2")], [], id="delete of an unknown object"),
        pytest.param([added("a", "2"), added("a", "3")], ["+a", "~a"], id="add of a known object"),
        pytest.param([added("a", "2"), deleted("a", "3"), deleted("a", "3")], ["+a", "-a"], id="deleted twice"),
        pytest.param(
            [added("a", "2"), deleted("a", "3"), added("a", "4", "new"), deleted("a", "3")],
            ["+a", "-a", "+a"],
            id="end of an earlier object repeated",
        ),
    ],
)
def test_a22_repeated_and_unexpected_events_are_idempotent(events, deliveries):
    assert RecordedMirror(PODS).by(*events) == deliveries


def test_a24_another_uid_under_one_name_is_a_delete_and_an_add():
    seen = follow(Page([pod("a", "5", "one")], "10"), Stream(modified("a", "11", "two"), HOLD))
    assert [(change.old and change.old.uid, change.new and change.new.uid) for change in seen.changes] == [
        (None, "one"),
        ("one", None),
        (None, "two"),
    ]


def test_a24_recreated_in_a_gap_is_split_at_the_next_list():
    seen = follow(Page([pod("a", "5", "one")], "10"), GONE, Page([pod("a", "15", "two")], "20"), Stream(HOLD))
    assert seen.deliveries == ["+a", "-a", "+a"]


def test_a25_a_missed_delete_is_reported_with_the_last_known_object():
    known = pod("a", "5")
    seen = follow(Page([known], "10"), GONE, Page([], "20"), Stream(HOLD))
    assert seen.changes[-1] == Change(PODS, known, None)


def test_a_delete_carries_the_final_state():
    seen = follow(Page([pod("a", "5")], "10"), Stream(deleted("a", "12"), HOLD))
    assert seen.changes[-1].old.resource_version == "12"


def test_a_listing_tells_only_what_changed():
    seen = follow(
        Page([pod("same", "1"), pod("changed", "2"), pod("gone", "3")], "10"),
        GONE,
        Page([pod("same", "1"), pod("changed", "12"), pod("new", "13")], "20"),
        Stream(HOLD),
    )
    assert seen.deliveries == ["+same", "+changed", "+gone", "~changed", "+new", "-gone"]
    assert [change.initial for change in seen.changes] == [True] * 3 + [False] * 3


def test_a27_one_unreadable_object_does_not_hold_up_thousands():
    noted: list[tuple[Resource, Malformed]] = []
    bad = Malformed("default/bad", "spec.containers: expected a list")
    pods = [pod(f"p{number}") for number in range(9_999)]
    seen = follow(Page(pods, "10", malformed=[bad]), Stream(HOLD), on_malformed=lambda *what: noted.append(what))
    assert len(seen.changes) == 9_999
    assert seen.informer.malformed == {"default/bad": "spec.containers: expected a list"}
    assert noted == [(PODS, bad)]
    assert seen.asked == [("list", "0"), ("watch", "10")]


def test_a_bad_quantity_sets_a_node_aside_until_it_is_corrected():
    seen = follow(
        Page([node("good"), node("bad", cpu="four")], "10"),
        Stream(1, WatchEvent(MODIFIED, node("bad", "11", "4"), "11"), HOLD),
        resource=NODES,
    )
    assert seen.deliveries == ["+good", "+bad"]
    assert seen.informer.malformed == {}


BAD = Malformed("n", "unreadable")


@pytest.mark.parametrize(
    ("events", "deliveries", "malformed"),
    [
        pytest.param([(MODIFIED, BAD)], [], {"n"}, id="unreadable version: the last good one stays"),
        pytest.param([(MODIFIED, BAD), (MODIFIED, node("n", "3"))], ["~n"], set(), id="readable again"),
        pytest.param([(MODIFIED, BAD), (DELETED, BAD)], ["-n"], set(), id="deleted while unreadable"),
        pytest.param(
            [(MODIFIED, node("n", "2", "four")), (DELETED, node("n", "3", "four"))],
            ["-n"],
            set(),
            id="deleted with a bad value",
        ),
        pytest.param([(ADDED, node("n", "2", "four", uid="other"))], ["-n"], {"n"}, id="another object of that name"),
        pytest.param(
            [(ADDED, BAD), (DELETED, node("n", "3", uid="other"))], ["-n"], set(), id="replaced unseen, then gone"
        ),
    ],
)
def test_a_known_object_that_turns_unreadable(events, deliveries, malformed):
    nodes = RecordedMirror(NODES)
    nodes.by(WatchEvent(ADDED, node("n"), "1"))
    assert nodes.by(*[WatchEvent(type_, obj, "9") for type_, obj in events]) == deliveries
    assert set(nodes.mirror.malformed) == malformed


def test_a_listing_with_an_unreadable_version_is_no_delete():
    seen = follow(Page([node("n")], "10"), GONE, Page([], "20", malformed=[BAD]), Stream(HOLD), resource=NODES)
    assert seen.deliveries == ["+n"]
    assert set(seen.informer.malformed) == {"n"}


def test_what_vanished_is_no_longer_counted_as_malformed():
    seen = follow(Page([], "10", malformed=[BAD]), GONE, Page([], "20"), Stream(HOLD), resource=NODES)
    assert seen.informer.malformed == {}


def test_the_same_complaint_is_made_once():
    noted: list[tuple[Resource, Malformed]] = []
    again = WatchEvent(MODIFIED, BAD, "11")
    follow(
        Page([], "10", malformed=[BAD]),
        Stream(again, again, HOLD),
        resource=NODES,
        on_malformed=lambda *what: noted.append(what),
    )
    assert noted == [(NODES, BAD)]


ODD = ["", ".", "..", "a/b", "50%", "a b", "a\nb", "a\x00", "\ud800", "größe"]


@pytest.mark.parametrize("text", ODD, ids=ascii)
@pytest.mark.parametrize("field", ["name", "namespace"])
def test_a_pod_that_cannot_be_asked_for_by_its_name_is_set_aside_and_named_once(field, text):
    odd = replace(pod("web", "5"), metadata=replace(pod("web", "5").metadata, **{field: text}))
    noted: list[tuple[Resource, Malformed]] = []
    seen = follow(
        Page([odd, pod("good", "6")], "10"),
        Stream(WatchEvent(MODIFIED, odd, "11"), HOLD),
        on_malformed=lambda *what: noted.append(what),
    )
    assert seen.deliveries == ["+good"]
    [(resource, problem)] = noted
    assert (resource, seen.informer.status().malformed) == (PODS, 1)
    assert problem.error.startswith(f"Pod {odd.key!a}: metadata.{field}: {text!a} is not a valid object name")


@pytest.mark.parametrize("name", ["a", "node-1.example.com", "system:node", "x" * 253, "A_b", "..."])
def test_a_name_that_stands_in_a_path_passes(name):
    nodes = RecordedMirror(NODES)
    assert nodes.by(WatchEvent(ADDED, node(name), "1")) == [f"+{name}"]
    assert nodes.mirror.malformed == {}


def test_a_node_without_a_name_is_set_aside():
    nodes = RecordedMirror(NODES)
    assert nodes.by(WatchEvent(ADDED, node(""), "1")) == []
    assert nodes.mirror.malformed == {
        "": "Node '': metadata.name: '' is not a valid object name; check the server or proxy that sent it"
    }


def test_a10_after_a_rewind_equal_versions_of_different_objects_are_distinguished():
    """The server hands out the numbers of the lost changes again."""
    recorded = RecordedMirror(NODES)
    recorded.by(WatchEvent(ADDED, node("a", "5", cpu="4"), "5"), WatchEvent(ADDED, node("b", "6"), "6"))
    recorded.changes.clear()
    recorded.mirror.rewound = True
    list(recorded.mirror.replace([node("a", "5", cpu="8"), node("b", "6")], initial=False))
    assert [tell(change) for change in recorded.changes] == ["-a", "+a"]
    assert recorded.mirror.objects["a"].status.allocatable["cpu"] == "8"
    assert not recorded.mirror.rewound
