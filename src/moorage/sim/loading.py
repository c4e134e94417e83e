"""Loads workloads from files: determines the type of a file and reads the files that it names."""

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


def load_workload(path: Path, mapping: Path | None = None, *, as_scheduled: bool = False, since: str = "") -> Workload:
    """Load a workload from a file, whose type follows from its name: a scenario, a recording or, with a
    mapping, a trace.

    `since` says where in a recording to begin.
    """
    if not path.exists():
        raise MoorageError(f"Cannot read {path}: no such file.")
    ending = "".join(path.suffixes[-2:]).removesuffix(".gz")
    if ending.endswith(".csv"):
        if mapping is None:
            raise MoorageError(f"{path}: a trace needs a file that maps its columns. Add --mapping FILE.")
        return Trace(path, read_mapping(_read(mapping), str(mapping)), str(mapping))
    if mapping is not None:
        raise MoorageError(f"{path}: --mapping applies only to traces (.csv or .csv.gz).")
    if path.name.endswith(ENDINGS):
        return _recording(path, as_scheduled, since)
    if as_scheduled or since:
        option = "--as-scheduled" if as_scheduled else "--since"
        raise MoorageError(f"{path}: {option} applies only to recordings ({', '.join(ENDINGS)}).")
    if ending.endswith(SCENARIOS):
        return read_scenario(_read(path), str(path), path.parent)
    raise MoorageError(
        f'Cannot tell the file type from the name "{path}"; expected a scenario (.yaml), a recording '
        f"({', '.join(ENDINGS)}) or a trace (.csv, .csv.gz)."
    )


def _recording(path: Path, as_scheduled: bool, since: str) -> Recording:
    """Open a recording, from its beginning or from `since`, which is a time or a duration after the beginning."""
    recording = Recording(path, as_scheduled=as_scheduled)
    if not since:
        return recording
    moment = parse_time(since)
    if moment is None:
        moment = recording.began + _seconds("--since", since)
    if (found := snapshot_before(path, moment)) is not None:
        objects = snapshots.load(found[1], snapshots.custom_kinds(found[1])).objects
        recording.since(moment, found[0], [obj for listed in objects.values() for obj in listed])
    else:
        recording.since(moment)
    return recording


def end_of(workload: Workload, until: str) -> float | None:
    """Return the virtual second at which a run ends, or None. `until` is a duration or, for a recording, a time."""
    if not until:
        return None
    moment = parse_time(until)
    if moment is None:
        return _seconds("--until", until)
    if not isinstance(workload, Recording):
        raise MoorageError(f"--until: only a recording has a time such as {until}; write 90s, 15m or 1h30m.")
    if moment <= workload.began:
        began = format_time(workload.began)
        raise MoorageError(f"--until: {until} is not after the beginning of the recording ({began}). Use a later time.")
    return moment - workload.began


def _seconds(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise MoorageError(
            f"{option}: {text!r} is neither a time nor a duration; write 2026-01-01T08:30:00Z or 90m."
        ) from error


def read_scenario(text: str | bytes, source: str, folder: Path) -> ScenarioWorkload:
    """Read a scenario. The files that it names are relative to the folder."""

    def read_objects(name: str) -> list[dict[str, Any]]:
        return read_manifest(folder / name)

    return ScenarioWorkload(scenario.read(text, source, read_objects))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MoorageError(f"Cannot read {path}: {error.strerror}.") from error
