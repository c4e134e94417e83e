"""From files to workloads: which kind a file is, and the files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.api.times import DurationError, format_time, parse_duration, parse_time
from moorage.sim import scenario
from moorage.sim.generating import ScenarioWorkload
from moorage.sim.recording_files import ENDINGS, snapshot_before
from moorage.sim.recordings import Recording
from moorage.sim.traces import Trace, read_mapping
from moorage.sim.workload import Workload
from moorage.snapshots.manifests import read_manifest

SCENARIOS = (".yaml", ".yml", ".json")


def load_workload(
    path: Path, mapping: Path | None = None, *, as_scheduled: bool = False, since: str = ""
) -> Workload:
    """The workload in a file, by its name: a scenario, a record, or with a mapping a trace. `since` is where
    in a record to begin."""
    if not path.exists():
        raise MoorageError(f"{path} cannot be read: there is no such file")
    ending = "".join(path.suffixes[-2:]).removesuffix(".gz")
    if ending.endswith(".csv"):
        if mapping is None:
            raise MoorageError(f"{path}: what do its columns mean? Say it in a file, with --mapping FILE")
        return Trace(path, read_mapping(_read(mapping), str(mapping)), str(mapping))
    if mapping is not None:
        raise MoorageError(f"{path}: a mapping belongs to a trace, whose name ends in .csv or .csv.gz")
    if path.name.endswith(ENDINGS):
        return _record(path, as_scheduled, since)
    if as_scheduled or since:
        lacks = "placements to keep" if as_scheduled else "a time to begin at"
        raise MoorageError(f"{path}: only a record, whose name ends in .jsonl, has {lacks}")
    if ending.endswith(SCENARIOS):
        return read_scenario(_read(path), str(path), path.parent)
    raise MoorageError(
        f"{path}: not known what this is by its name; scenarios end in .yaml, records in "
        f"{', '.join(ENDINGS)}, traces in .csv or .csv.gz"
    )


def _record(path: Path, as_scheduled: bool, since: str) -> Recording:
    """From its beginning, or from a moment on: a time, or a duration after the beginning."""
    record = Recording(path, as_scheduled=as_scheduled)
    if not since:
        return record
    moment = parse_time(since)
    if moment is None:
        moment = record.began + _seconds("--since", since)
    if (found := snapshot_before(path, moment)) is not None:
        objects = snapshots.load(found[1], snapshots.custom_kinds(found[1])).objects
        record.since(moment, found[0], [obj for listed in objects.values() for obj in listed])
    else:
        record.since(moment)
    return record


def end_of(workload: Workload, until: str) -> float | None:
    """The virtual second at which a run ends: a duration, or for a record a time. None: not said."""
    if not until:
        return None
    moment = parse_time(until)
    if moment is None:
        return _seconds("--until", until)
    if not isinstance(workload, Recording):
        raise MoorageError(f"--until: only a record has a time such as {until}; write 90s, 15m or 1h30m")
    if moment <= workload.began:
        began = format_time(workload.began)
        raise MoorageError(f"--until: {until} is not after the beginning, {began}; say a later time")
    return moment - workload.began


def _seconds(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise MoorageError(
            f"{option}: {text!r} is neither a time nor a duration; write 2026-01-01T08:30:00Z or 90m"
        ) from error


def read_scenario(text: str | bytes, source: str, folder: Path) -> ScenarioWorkload:
    """A scenario; the files that it names are looked for in the folder."""

    def read_objects(name: str) -> list[dict[str, Any]]:
        return read_manifest(folder / name)

    return ScenarioWorkload(scenario.read(text, source, read_objects))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MoorageError(f"{path} cannot be read: {error.strerror}") from error
