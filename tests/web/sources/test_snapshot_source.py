"""A cluster that was read, as the pages of the UI ask it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.app.configuration import configure
from moorage.endpoints.answers import QueueGroup
from moorage.endpoints.queries import QueueQuery
from moorage.web.source import Question
from moorage.web.sources.snapshot_source import SnapshotSource
from tests.web.browser import clusters


@pytest.fixture
def source(tmp_path):
    return source_of(tmp_path, clusters.story())


def source_of(tmp_path, story):
    path = tmp_path / "story.json"
    path.write_text(json.dumps(story))
    configured = configure()
    resources = configured.resources()

    async def again():
        return snapshots.load(path, resources)

    return SnapshotSource("story", snapshots.load(path, resources), configured, again)


def names(page):
    return [pod.pod.removeprefix("default/") for pod in page.pods]


def test_pods_are_grouped_by_who_refuses_them(source):
    page = asyncio.run(source.queue(QueueQuery()))
    assert page.places == {"active": 1, "unschedulable": 3, "gated": 1}
    assert page.groups == [
        QueueGroup(place="unschedulable", reason="NodeResourcesFit", pods=3),
        QueueGroup(place="active", reason="", pods=1),
        QueueGroup(place="gated", reason="SchedulingGates", pods=1),
    ]


def test_22_pods_on_partly_closed_nodes_make_a_handful_of_groups(tmp_path):
    gpu: dict[str, Any] = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    cordon: dict[str, Any] = {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
    ssd: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}}
    specs: list[dict[str, Any]] = [{}, gpu, cordon, {"tolerations": [{"operator": "Exists"}]}]
    story = clusters.story()
    story["pods"] += [
        clusters.pod(f"waits-{number}", "40", **{**specs[number % 4], **(ssd if number % 3 == 0 else {})})
        for number in range(22)
    ]
    page = asyncio.run(source_of(tmp_path, story).queue(QueueQuery(search="waits", limit=100)))
    assert len(page.pods) == 22
    assert len({tuple(pod.plugins) for pod in page.pods}) >= 8, "the plugins that reject some node"
    reasons = {group.reason for group in page.groups if group.place == "unschedulable"}
    assert reasons == {"NodeAffinity", "NodeResourcesFit"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (QueueQuery(place="gated"), ["gated"]),
        (QueueQuery(reason="SchedulingGates"), ["gated"]),
        (QueueQuery(search="batch"), ["batch-0", "batch-1"]),
        (QueueQuery(search="batch", after="default/batch-0"), ["batch-1"]),
        (QueueQuery(reason="nothing like it"), []),
    ],
    ids=["place", "reason", "search", "after", "none"],
)
def test_a_page_has_what_was_asked_for(source, query, expected):
    assert names(asyncio.run(source.queue(query))) == expected


def test_pages_follow_each_other_until_there_is_none(source):
    page = asyncio.run(source.queue(QueueQuery(limit=2)))
    seen = names(page)
    while page.after is not None:
        page = asyncio.run(source.queue(QueueQuery(after=page.after, limit=2)))
        seen += names(page)
    assert seen == ["batch-0", "batch-1", "gated", "small", "train"]


def test_the_table_says_who_refuses_each_node_and_scores_the_others(source):
    found = asyncio.run(source.pod("default/small")).explanation["table"]
    verdicts = {each["plugin"]: dict(zip(found["nodes"], each["verdicts"], strict=True)) for each in found["plugins"]}
    scores = dict(zip(found["nodes"], found["scores"], strict=True))
    assert verdicts["TaintToleration"] == {"gpu-1": 1, "cpu-1": 0, "cpu-2": 0, "cpu-3": 0}
    assert verdicts["NodeUnschedulable"]["cpu-3"] == 1
    assert (scores["gpu-1"], scores["cpu-3"]) == (None, None)
    assert scores["cpu-1"] > 0


def test_a_node_names_the_pending_pods_it_refuses_by_template(source):
    refused = asyncio.run(source.node("cpu-1")).refused
    assert {each.pod: each.pods for each in refused} == {"default/batch-0": 2, "default/train": 1}
    assert {tuple(each.reasons) for each in refused} == {("Insufficient cpu",)}


def test_a_node_has_its_conditions_and_its_pods_have_phase_age_and_owner(tmp_path):
    story = clusters.story()
    cpu = story["nodes"][1]
    cpu["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z"}
    cpu["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    story["pods"][0]["status"] = {"phase": "Running"}
    node = asyncio.run(source_of(tmp_path, story).node("cpu-1")).node
    assert (node.created, node.deleting_since) == (1767225600.0, 1767312000.0)
    assert [(each.type, each.status, each.reason) for each in node.conditions] == [
        ("Ready", "Unknown", "NodeStatusUnknown")
    ]
    first = node.pods[0]
    assert (first.phase, first.owner, first.requests["cpu"]) == ("Running", "ReplicaSet/web", 1500)


def test_what_if_says_where_pods_are_now(source):
    outcome = asyncio.run(source.what_if(Question(drain=("cpu-1",), add_nodes=1, like="cpu-2")))
    assert outcome["present"]["default/web-0"] == "cpu-1"
    assert outcome["present"]["default/small"] == ""


def test_what_is_not_there_is_named(source):
    with pytest.raises(MoorageError, match="node 'absent' does not exist"):
        asyncio.run(source.node("absent"))
    with pytest.raises(MoorageError, match="pod 'absent' does not exist"):
        asyncio.run(source.pod("default/absent"))


def test_reading_again_shows_what_has_changed(source, tmp_path):
    changed = clusters.story()
    changed["pods"] = [clusters.pod("late", "100")]
    (tmp_path / "story.json").write_text(json.dumps(changed))
    assert "late" not in names(asyncio.run(source.queue(QueueQuery())))
    asyncio.run(source.read_again())
    assert names(asyncio.run(source.queue(QueueQuery()))) == ["late"]


def test_an_upgrade_is_previewed_with_the_configuration_of_the_source(source):
    answer = asyncio.run(source.upgrade("1.37"))
    assert (answer["from"], answer["to"], answer["skipped"]) == ("1.36", "1.37", {"gated": 1})
    assert {each["pod"] for each in answer["pods"]} == {"default/train", "default/batch-0", "default/batch-1"}
    assert [each["change"] for each in answer["reasons"]] == ["reports_no_idle_claims"]
    assert not [each for each in answer["configuration"] if each["kind"] == "error"]
    with pytest.raises(MoorageError, match="is not supported"):
        asyncio.run(source.upgrade("1.99"))
