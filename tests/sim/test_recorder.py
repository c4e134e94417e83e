"""Records of a cluster: what is in them, that nothing is missing after faults, and that they replay."""

from __future__ import annotations

import asyncio
import errno
import json
import sys
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage import snapshots
from moorage.api.errors import Forbidden, MoorageError
from moorage.api.resources import NODES, PODS, PRIORITY_CLASSES, SERVICES, Resource, custom
from moorage.sim import loop
from moorage.sim.loading import load_workload
from moorage.sim.loop import VirtualClock
from moorage.sim.recorder import ClusterRecorder, RecordingOptions
from moorage.sim.recording_files import RecordingFile, snapshot_folder
from moorage.sim.recordings import Recording
from moorage.sim.simulation import Simulation
from moorage.store import faults, refusals
from moorage.store.faults import Fault, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing import Cluster, make_node, make_pod

ZSTANDARD = pytest.param(
    ".jsonl.zst", marks=pytest.mark.skipif(find_spec("zstandard") is None, reason="the extra sim is not installed")
)
ENDINGS = [".jsonl", ".jsonl.gz", ZSTANDARD]
QUOTAS = custom("example.com", "v1", "quotas", "Quota")


async def at_once(call: Any, *args: Any, **options: Any) -> None:
    """There are no threads in virtual time."""
    call(*args, **options)


class Recorded:
    """A store, a recording of it, and what it wrote."""

    def __init__(self, path: Path, *resources: Resource, seed: int = 0, **options: Any) -> None:
        self.clock = VirtualClock()
        self.store = Store(self.clock.wall, Random(seed), history_limit=20)
        self.faults = Faults(Random(seed))
        self.recording = ClusterRecorder(
            LocalClient(self.store, self.clock, self.faults),
            resources,
            RecordingOptions(path, **options),
            clock=self.clock,
            random=Random(seed),
            aside=at_once,
        )
        self.task = asyncio.ensure_future(asyncio.sleep(0))

    async def start(self) -> None:
        self.task = asyncio.ensure_future(self.recording.run())
        await asyncio.sleep(2.0)

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    def node(self, name: str) -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        self.store.load(NODES, {"metadata": {"name": name}, "status": {"allocatable": amounts}})

    def labels(self) -> dict[str, dict[str, str]]:
        """Of the pods that are there, by name."""
        pods = [stored.raw["metadata"] for stored in self.store.list(PODS).items]
        return {meta["name"]: meta.get("labels", {}) for meta in pods}

    def pod(self, name: str, **fields: Any) -> None:
        self.store.create(PODS, {"metadata": {"name": name, "namespace": "default"}, **fields})


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".zst":
        text: bytes = pytest.importorskip("zstandard").ZstdDecompressor().decompressobj().decompress(data)
        return text
    return zlib.decompressobj(31).decompress(data) if path.suffix == ".gz" else data


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in unpacked(path).splitlines()]


def changes_in(path: Path) -> list[str]:
    """+name, ~name, -name."""
    signs = {"Add": "+", "Update": "~", "Delete": "-"}
    return [f"{signs[line['event']]}{line['resource']['metadata']['name']}" for line in lines(path)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_there_comes_first_pods_last_and_then_each_change_with_its_time(tmp_path, ending):
    path = tmp_path / f"day{ending}"

    async def main() -> None:
        world = Recorded(path, SERVICES)
        world.pod("old", spec={"nodeName": "n"})
        world.node("n")
        await world.start()
        world.pod("p")
        await asyncio.sleep(10)
        world.store.bind("p", "default", "n")
        world.store.delete(PODS, "old", namespace="default", grace_period=0)
        await asyncio.sleep(0.5)
        await world.stop()
        assert (world.recording.written.objects, world.recording.written.events) == (2, 3)
        assert world.recording.written.size == path.stat().st_size

    loop.run(main())
    assert changes_in(path) == ["+n", "+old", "+p", "~p", "-old"]
    *_, update, delete = lines(path)
    assert update["resource"]["spec"]["nodeName"] == "n"
    assert (update["resource"]["kind"], update["resource"]["apiVersion"]) == ("Pod", "v1")
    name = {"name": "old", "namespace": "default"}
    assert delete["resource"] == {"apiVersion": "v1", "kind": "Pod", "metadata": name}
    times = [line["time"] for line in lines(path)]
    assert times == sorted(set(times))
    assert times[3].startswith("2026-01-01T00:00:12.")


def test_environment_annotations_and_managed_fields_are_omitted(tmp_path):
    async def record(path: Path, **options: bool) -> None:
        world = Recorded(path, QUOTAS, **options)
        meta = {"annotations": {"note": "kept"}, "managedFields": [{"manager": "secret"}]}
        container = {"name": "c", "env": [{"name": "A", "value": "secret"}], "command": ["secret"]}
        world.store.create(
            PODS, {"metadata": {"name": "p", "namespace": "default", **meta}, "spec": {"containers": [container]}}
        )
        world.store.create(QUOTAS, {"metadata": {"name": "q", "namespace": "default", **meta}})
        await world.start()
        world.store.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        await asyncio.sleep(1)
        await world.stop()

    loop.run(record(without := tmp_path / "without.jsonl"))
    loop.run(record(asked := tmp_path / "with.jsonl", annotations=True))
    assert changes_in(without) == changes_in(asked) == ["+q", "+p", "~p"]
    for path in (without, asked):
        assert "secret" not in path.read_text()
        assert "resourceVersion" not in path.read_text()
    assert "note" not in without.read_text()
    assert asked.read_text().count("note") == 3


def test_a_heartbeat_of_a_node_is_no_change(tmp_path):
    path = tmp_path / "day.jsonl"

    def status(second: int, ready: str) -> dict[str, Any]:
        time = f"2026-01-01T00:00:{second:02d}Z"
        return {"status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": time}]}}

    async def main() -> None:
        world = Recorded(path)
        world.node("n")
        await world.start()
        for second, ready in enumerate(["True", "True", "True", "False"]):
            world.store.patch(NODES, "n", status(second, ready), subresource="status")
        await asyncio.sleep(1)
        await world.stop()

    loop.run(main())
    assert changes_in(path) == ["+n", "~n", "~n"]


@pytest.mark.parametrize("seed", range(8))
def test_a_record_is_the_cluster_whatever_happens_to_the_connection(tmp_path, seed):
    """Lists and watches fail, history is lost: what the lines add up to is what the store has."""
    path = tmp_path / "day.jsonl.gz"

    async def main() -> dict[str, dict[str, Any]]:
        world = Recorded(path, seed=seed)
        rng = Random(seed)
        await world.start()
        for effect in (
            faults.not_sent(),
            faults.gone(),
            faults.server_error(),
            faults.cut_watch(2),
            faults.cut_watch(1, error=faults.lost_answer().error),
        ):
            world.faults.add(Fault(effect, times=None, chance=0.1))
        there: set[str] = set()
        for _ in range(200):
            name = rng.choice("abcdef")
            if name not in there:
                world.pod(name)
            elif rng.random() < 0.5:
                world.store.delete(PODS, name, namespace="default", grace_period=0)
            else:
                turn = {"metadata": {"labels": {"turn": str(rng.random())}}}
                world.store.patch(PODS, name, turn, namespace="default")
            there = set(world.labels())
            await asyncio.sleep(rng.random() * 3)
        world.faults.clear()
        await asyncio.sleep(120)
        await world.stop()
        return world.labels()

    expected = loop.run(main(), seed=seed)
    found: dict[str, Any] = {}
    for line in lines(path):
        name = line["resource"]["metadata"]["name"]
        if line["event"] == "Delete":
            del found[name]
        else:
            assert (line["event"] == "Add") == (name not in found)
            found[name] = line["resource"]["metadata"].get("labels", {})
    assert found == expected


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_every_file_begins_with_all_objects_and_all_together_are_one_record(tmp_path, ending):
    async def main() -> list[Path]:
        world = Recorded(tmp_path / f"day{ending}", rotate_seconds=60.0)
        world.node("n")
        await world.start()
        for number in range(3):
            world.pod(f"p-{number}", spec={"nodeName": "n"})
            await asyncio.sleep(60)
        await world.stop()
        return world.recording.written.files

    files = loop.run(main())
    assert [file.name for file in files] == [f"day-000{number}{ending}" for number in (1, 2, 3, 4)]
    assert changes_in(files[2]) == ["+n", "+p-0", "+p-1", "+p-2"]
    (joined := tmp_path / f"all{ending}").write_bytes(b"".join(file.read_bytes() for file in files))
    for file, running in ((files[1], 2), (joined, 3)):
        result = Simulation(file).run()
        assert (result["running"], result.problems) == (running, [])


def test_files_are_rotated_by_what_has_happened_and_not_by_what_was_there(tmp_path):
    async def main() -> int:
        world = Recorded(tmp_path / "day.jsonl", rotate_bytes=2500)
        for number in range(30):
            world.node(f"n-{number}")
        await world.start()
        await asyncio.sleep(30)
        assert len(world.recording.written.files) == 1
        for number in range(12):
            world.pod(f"p-{number}")
            await asyncio.sleep(5)
        await world.stop()
        assert world.recording.written.size == sum(f.stat().st_size for f in tmp_path.iterdir())
        return len(world.recording.written.files)

    assert 2 <= loop.run(main()) <= 4


def test_snapshots_are_taken_at_intervals_and_are_those_of_moorage_snapshot(tmp_path):
    output = tmp_path / "day.jsonl.gz"

    async def main() -> None:
        world = Recorded(output, snapshot_seconds=60.0)
        world.node("n")
        await world.start()
        await asyncio.sleep(30)
        world.pod("p")
        await asyncio.sleep(60)
        await world.stop()

    loop.run(main())
    files = sorted(snapshot_folder(output).iterdir())
    assert [len(snapshots.load(file).objects[PODS]) for file in files] == [0, 1]
    assert files[0].name.startswith("2026-01-01T00-00-")


@pytest.mark.parametrize("kept", [True, False], ids=["snapshots", "no snapshots"])
@pytest.mark.parametrize("since", ["100s", "2026-01-01T00:01:42Z"])
def test_a_replay_begins_at_any_moment_with_what_was_there(tmp_path, kept, since):
    """A pod that was bound before keeps its node, one that was pending is decided anew."""
    output = tmp_path / "day.jsonl.gz"

    async def main() -> None:
        world = Recorded(output, QUOTAS, snapshot_seconds=60.0)
        world.node("n")
        world.store.create(QUOTAS, {"metadata": {"name": "q", "namespace": "default"}})
        await world.start()
        for name in ("gone", "bound", "pending"):
            world.pod(name)
        await asyncio.sleep(80)
        world.store.bind("bound", "default", "n")
        world.store.delete(PODS, "gone", namespace="default", grace_period=0)
        await asyncio.sleep(50)
        world.pod("later")
        await asyncio.sleep(10)
        await world.stop()

    loop.run(main())
    if not kept:
        for file in snapshot_folder(output).iterdir():
            file.unlink()
    result = Simulation(load_workload(output, since=since)).run()
    assert (result["arrived"], result["running"]) == (3, 3)
    assert result.nodes() == {"default/pending": "n", "default/later": "n"}
    assert [placed.time for placed in result.placements()] == pytest.approx([0, 30], abs=2)
    assert result.problems == [
        "1 objects of the kind Quota of example.com/v1 were ignored because no plugin reads them"
    ]
    kept_as_was = Simulation(load_workload(output, since=since, as_scheduled=True)).run()
    assert (kept_as_was["running"], kept_as_was["pending"]) == (1, 2)


@pytest.mark.parametrize(
    ("since", "says"),
    [
        ("tomorrow", "--since: 'tomorrow' is neither a time nor a duration; write 2026"),
        ("10h", "has no changes after 2026-01-01T10:00:0"),
    ],
)
def test_a_moment_that_a_record_does_not_have_is_named(tmp_path, since, says):
    async def main() -> None:
        world = Recorded(tmp_path / "day.jsonl")
        world.node("n")
        await world.start()
        await world.stop()

    loop.run(main())
    with pytest.raises(MoorageError, match=says):
        Simulation(load_workload(tmp_path / "day.jsonl", since=since)).run()


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_what_was_flushed_survives_a_kill(tmp_path, ending):
    path = tmp_path / f"day{ending}"

    async def main() -> bytes:
        world = Recorded(path)
        world.node("n")
        await world.start()
        world.pod("a")
        await asyncio.sleep(2)
        written: bytes = path.read_bytes()
        return written

    killed = loop.run(main())
    path.write_bytes(killed)
    assert changes_in(path) == ["+n", "+a"]
    result = Simulation(path).run()
    assert result["arrived"] == 1
    assert "truncated after line 2" in result.problems[0]


def test_zstandard_that_is_not_installed_is_named_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)

    async def main() -> None:
        Recorded(tmp_path / "day.jsonl.zst")

    with pytest.raises(MoorageError, match=r"day.jsonl.zst: Zstandard is not installed. Install moorage\[sim\]"):
        loop.run(main())


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_record_cut_anywhere_replays_up_to_there(tmp_path, ending):
    path = tmp_path / f"day{ending}"
    file = RecordingFile(path)
    for number in range(20):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}"}, "spec": {"nodeName": "n"}}
        line = {"time": f"2026-01-01T00:00:{number:02d}Z", "event": "Add", "resource": pod}
        file.add(json.dumps(line).encode() + b"\n")
        file.flush()
    file.close()
    whole = path.read_bytes()
    arrived = []
    for cut in range(len(whole) // 2, len(whole), len(whole) // 10):
        path.write_bytes(whole[:cut])
        result = Simulation(path).run()
        arrived.append(int(result["arrived"]))
        assert result.problem_count <= 1
    assert arrived == sorted(arrived)
    assert 1 <= arrived[0] < arrived[-1] <= 20


def test_it_ends_after_its_duration(tmp_path):
    async def main() -> float:
        world = Recorded(tmp_path / "day.jsonl", duration=90.5)
        await world.start()
        await world.task
        return world.clock.now()

    assert loop.run(main()) == pytest.approx(90.5, abs=1.0)


def forbidden(what: str) -> Exception:
    return refusals.failure(403, "Forbidden", f"{what} is forbidden")


def test_a_kind_that_may_not_be_read_is_a_gap_and_one_that_is_needed_an_error(tmp_path):
    async def main(kind: Resource) -> Recorded:
        world = Recorded(tmp_path / f"{kind.plural}.jsonl", PRIORITY_CLASSES)
        world.faults.add(Fault(faults.fail(forbidden(kind.plural)), verb="list", resource=kind, times=None))
        await world.start()
        await world.stop()
        return world

    recorded = loop.run(main(PRIORITY_CLASSES))
    assert "is forbidden" in recorded.recording.cluster().unread[PRIORITY_CLASSES]
    with pytest.raises(Forbidden):
        loop.run(main(PODS))


def test_a_kind_that_may_be_listed_but_not_watched_is_a_trouble(tmp_path):
    async def main() -> list[str]:
        world = Recorded(tmp_path / "day.jsonl", PRIORITY_CLASSES, QUOTAS)
        world.faults.add(Fault(faults.fail(forbidden("watch")), verb="watch", resource=PRIORITY_CLASSES, times=None))
        world.faults.add(Fault(faults.not_found(), verb="list", resource=QUOTAS, times=None))
        await world.start()
        await asyncio.sleep(10)
        await world.stop()
        return world.recording.troubles()

    (trouble,) = loop.run(main())
    assert trouble.startswith(f"{PRIORITY_CLASSES} could no longer be watched (403")
    assert trouble.endswith("changes may be missing")


def test_what_is_in_the_way_is_named(tmp_path):
    async def record(path: Path) -> None:
        world = Recorded(path)
        await world.start()
        await world.task

    (tmp_path / "day.jsonl").write_text("precious")
    with pytest.raises(MoorageError, match=r"day.jsonl already exists. Use another name"):
        loop.run(record(tmp_path / "day.jsonl"))
    assert (tmp_path / "day.jsonl").read_text() == "precious"
    with pytest.raises(MoorageError, match=r"Cannot write the recording .*x.jsonl: No such file"):
        loop.run(record(tmp_path / "none" / "x.jsonl"))
    with pytest.raises(MoorageError, match=r"must end in .jsonl, .jsonl.gz, .jsonl.zst"):
        loop.run(record(tmp_path / "day.json"))


def test_a_full_disk_ends_the_recording_with_the_name_of_the_file(tmp_path, monkeypatch):
    async def main() -> None:
        world = Recorded(tmp_path / "day.jsonl")
        await world.start()

        def full(self: RecordingFile) -> None:
            raise self._failed(OSError(errno.ENOSPC, "No space left on device"))

        monkeypatch.setattr(RecordingFile, "_write", full)
        await world.task

    with pytest.raises(MoorageError, match=r"Cannot write the recording .*day.jsonl: No space left on device"):
        loop.run(main())


def test_a_scheduler_at_work_is_recorded_and_replayed_as_it_was(tmp_path):
    path = tmp_path / "day.jsonl.gz"
    with Cluster() as cluster:
        cluster.add(make_node(f"n-{number}", cpu="4") for number in range(4))
        recording = ClusterRecorder(
            LocalClient(cluster.store, cluster.clock), [], RecordingOptions(path), clock=cluster.clock, random=Random(0)
        )
        task = cluster.run(begin(recording))
        for number in range(20):
            cluster.add(make_pod(f"p-{number}", cpu="1"))
            cluster.settle()
            if number in (5, 9):
                cluster.delete(cluster.pod(f"p-{number - 2}") or make_pod("none"))
        expected, pending = cluster.bound(), cluster.pending()
        cluster.run(end(task))
    replayed = Simulation(Recording(path, as_scheduled=True)).run()
    found = {pod: node for pod, node in replayed.nodes().items() if pod in expected}
    assert found == expected
    assert [pod for pod, node in replayed.nodes().items() if not node] == pending
    assert replayed.problems == []


async def begin(recording: ClusterRecorder) -> asyncio.Task[None]:
    task = asyncio.ensure_future(recording.run())
    await asyncio.sleep(1)
    return task


async def end(task: asyncio.Task[None]) -> None:
    await asyncio.sleep(1)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
