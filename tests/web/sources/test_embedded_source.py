"""What the page Objects does to a cluster, on an API server in process and under virtual time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml

from moorage import snapshots
from moorage.api import resources
from moorage.api.errors import MoorageError
from moorage.client.credentials import Credentials
from moorage.client.transport import HttpRequest
from moorage.embedded.builtin import built_in_catalog
from moorage.embedded.catalog.discovery import Discovery
from moorage.web.sources import transfer
from moorage.web.sources.api_objects import ApiObjects
from moorage.web.sources.embedded_source import EmbeddedSource
from tests.embedded.apiserver.kit import NODES, PODS, World, node, pod, serve

Scenario = Callable[[World, EmbeddedSource], Awaitable[None]]
POD = {"apiVersion": "v1", "kind": "Pod", **pod("new")}


def with_source(scenario: Scenario, *, read_only: bool = False) -> None:
    catalog = built_in_catalog()

    async def main(world: World) -> None:
        objects = ApiObjects(lambda: world.transport)
        await world.create(NODES, node("first"))
        first = await transfer.uids(objects)
        given = Credentials("https://127.0.0.1:1", "test")
        await scenario(world, EmbeddedSource(given, objects, first, read_only=read_only))

    serve(main, catalog=catalog, endpoints=(Discovery(catalog),))


def file_of(**lists: Any) -> bytes:
    return json.dumps(lists).encode()


def results(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["object"]: row["result"] for row in rows}


def names(listed: dict[str, Any]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in listed["items"])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda source, text: source.create(json.dumps(POD)), id="create"),
        pytest.param(lambda source, text: source.save(text, text), id="save"),
        pytest.param(lambda source, text: source.delete_object(text), id="delete"),
        pytest.param(lambda source, text: source.bring_in(file_of(pods=[pod("new")]), True), id="import"),
        pytest.param(lambda source, text: source.reset(), id="reset"),
    ],
)
def test_a_read_only_source_refuses_what_changes_the_cluster(change):
    async def scenario(world: World, source: EmbeddedSource) -> None:
        await world.create(PODS, pod("since"))
        text = await source.object_text("pods", "default", "since")
        with pytest.raises(MoorageError, match="read-only"):
            await change(source, text)
        assert names(await world.get(PODS)) == ["since"]
        assert (await world.get(f"{PODS}/since"))["metadata"]["resourceVersion"] in text

    with_source(scenario, read_only=True)


def test_a_save_survives_a_heartbeat_and_stops_at_a_change_of_another_user():
    async def scenario(world: World, source: EmbeddedSource) -> None:
        opened = await source.object_text("nodes", "", "first")
        beat = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        merge = {"content-type": "application/merge-patch+json"}
        assert (await world.ask("PATCH", f"{NODES}/first/status", beat, headers=merge)).status == 200
        edited = yaml.safe_load(opened)
        edited["metadata"]["labels"] = {"mine": "1"}
        await source.save(opened, yaml.safe_dump(edited))
        saved = await world.get(f"{NODES}/first")
        assert saved["metadata"]["labels"] == {"mine": "1"}
        assert saved["status"]["conditions"][0]["status"] == "True", "the status is not the user's"
        with pytest.raises(MoorageError, match="was changed since it was opened"):
            await source.save(opened, opened)
        assert await world.get(f"{NODES}/first") == saved

    with_source(scenario)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda obj: obj["metadata"].update(name="other"), "create another one instead"),
        (lambda obj: obj.update(kind="Pod"), "create another one instead"),
    ],
    ids=["another name", "another kind"],
)
def test_an_edit_cannot_turn_an_object_into_another(edit, says):
    async def scenario(world: World, source: EmbeddedSource) -> None:
        opened = await source.object_text("nodes", "", "first")
        obj = yaml.safe_load(opened)
        edit(obj)
        with pytest.raises(MoorageError, match=says):
            await source.save(opened, yaml.safe_dump(obj))

    with_source(scenario)


def test_a_pod_of_the_same_name_that_came_later_is_not_deleted():
    async def scenario(world: World, source: EmbeddedSource) -> None:
        await world.create(PODS, pod("a"))
        opened = await source.object_text("pods", "default", "a")
        await world.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
        await world.create(PODS, pod("a"))
        with pytest.raises(MoorageError, match="UID"):
            await source.delete_object(opened)
        assert names(await world.get(PODS)) == ["a"]

    with_source(scenario)


def test_an_import_says_what_became_of_each_object_and_pods_come_after_what_they_need():
    finished = {**pod("done"), "status": {"phase": "Succeeded"}}
    leaving = pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    urgent = pod("urgent", namespace="team", priorityClassName="high", nodeName="n1")
    urgent["metadata"] |= {
        "uid": "of another cluster",
        "resourceVersion": "7",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}],
    }
    content = file_of(
        pods=[urgent, finished, leaving, pod("BAD_NAME")],
        nodes=[node("n1"), node("first")],
        priorityClasses=[
            {"metadata": {"name": "high"}, "value": 7},
            {"metadata": {"name": "system-node-critical"}, "value": 1},
        ],
        namespaces=[{"metadata": {"name": "team"}}, {"metadata": {"name": "default"}}],
        schedulerConfig={"profiles": []},
        custom={"sofas.v1.ikea": [{"apiVersion": "ikea/v1", "kind": "Sofa", "metadata": {"name": "s"}}]},
    )

    async def scenario(world: World, source: EmbeddedSource) -> None:
        rows = results(await source.bring_in(gzip.compress(content), False))
        refused = rows.pop("Pod default/BAD_NAME")
        assert refused.startswith("refused: ")
        assert "BAD_NAME" in refused
        assert rows.pop("Sofa s").startswith("refused: The cluster has no kind Sofa in ikea/v1")
        assert rows == {
            "Pod default/done": "skipped: it has finished",
            "Pod default/leaving": "skipped: it was being deleted",
            "PriorityClass system-node-critical": "skipped: every cluster has its own",
            "Namespace default": "skipped: every cluster has its own",
            "KubeSchedulerConfiguration": "skipped: use the page Configuration to apply it",
            "Namespace team": "created",
            "PriorityClass high": "created",
            "Node n1": "created",
            "Node first": "kept: an object of this name exists",
            "Pod team/urgent": "created",
        }
        made = await world.get("/api/v1/namespaces/team/pods/urgent")
        assert (made["spec"]["nodeName"], made["spec"]["priority"]) == ("n1", 7)
        assert "ownerReferences" not in made["metadata"]
        assert made["metadata"]["uid"] != "of another cluster"

    with_source(scenario)


@pytest.mark.parametrize("replace", [False, True], ids=["keep", "replace"])
def test_what_exists_is_kept_or_replaced_by_choice(replace):
    async def scenario(world: World, source: EmbeddedSource) -> None:
        before = await world.create(PODS, pod("a"))
        labelled = node("first")
        labelled["metadata"]["labels"] = {"disk": "ssd"}
        content = file_of(pods=[pod("a", priority=0)], nodes=[labelled])
        rows = results(await source.bring_in(content, replace))
        says = "replaced" if replace else "kept: an object of this name exists"
        assert rows == {"Node first": says, "Pod default/a": says}
        after = await world.get(f"{PODS}/a")
        assert (after["metadata"]["uid"] != before["metadata"]["uid"]) == replace
        assert ("labels" in (await world.get(f"{NODES}/first"))["metadata"]) == replace

    with_source(scenario)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "the file is not YAML"),
        (b"\x1f\x8bbroken", "the file cannot be read"),
        (b"pods: [1]", "the file, pods: every item must be an object with metadata.name"),
        (b"a: b", "apiVersion and kind are missing"),
    ],
    ids=["no YAML", "no gzip", "no object", "nothing known"],
)
def test_a_file_that_cannot_be_read_is_said_and_changes_nothing(content, says):
    async def scenario(world: World, source: EmbeddedSource) -> None:
        with pytest.raises(MoorageError, match=says):
            await source.bring_in(content, False)

    with_source(scenario)


def test_a_reset_deletes_what_came_since_and_what_belongs_to_the_first_objects_stays():
    async def scenario(world: World, source: EmbeddedSource) -> None:
        first = await world.get(f"{NODES}/first")
        owner = {"apiVersion": "v1", "kind": "Node", "name": "first", "uid": first["metadata"]["uid"]}
        owned = pod("owned")
        owned["metadata"]["ownerReferences"] = [owner]
        await world.create(PODS, owned)
        await world.create(PODS, pod("mine", nodeName="second"))
        await world.create(NODES, node("second"))
        assert await source.created() == ["Pod default/mine", "Node second"]
        assert results(await source.reset()) == {"Pod default/mine": "deleted", "Node second": "deleted"}
        assert names(await world.get(PODS)) == ["owned"]
        assert names(await world.get(NODES)) == ["first"]
        assert await source.reset() == []

    with_source(scenario)


def test_a_reset_says_what_a_finalizer_holds():
    async def scenario(world: World, source: EmbeddedSource) -> None:
        held = pod("held")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(PODS, held)
        [row] = await source.reset()
        assert row["failed"]
        assert row["result"] == "not deleted; its finalizers: example.com/hold"

    with_source(scenario)


def test_an_export_is_a_snapshot_that_commands_read_and_an_import_takes_back(tmp_path):
    async def scenario(world: World, source: EmbeddedSource) -> None:
        await world.create(PODS, pod("a"))
        content = await source.export("snapshot")
        found = json.loads(content)
        assert [item["metadata"]["name"] for item in found["pods"]] == ["a"]
        assert found["namespaces"] == [], "every cluster has those"
        (tmp_path / "snapshot.json").write_bytes(content)
        loaded = snapshots.load(tmp_path / "snapshot.json")
        assert [obj.name for obj in loaded.objects[resources.PODS]] == ["a"]
        assert [obj.name for obj in loaded.objects[resources.NODES]] == ["first"]
        await source.reset()
        assert results(await source.bring_in(content, False))["Pod default/a"] == "created"

    with_source(scenario)


def test_no_answer_is_asked_for_packed():
    """API servers pack large answers for those who do not say otherwise."""
    asked: list[HttpRequest] = []

    async def scenario(world: World, source: EmbeddedSource) -> None:
        class Noting:
            def send(self, request: HttpRequest) -> Any:
                asked.append(request)
                return world.transport.send(request)

        objects = ApiObjects(Noting)  # type: ignore[arg-type]
        await objects.table((await objects.kinds())["pods"], "", 10)
        assert {request.headers["Accept-Encoding"] for request in asked} == {"identity"}

    with_source(scenario)
