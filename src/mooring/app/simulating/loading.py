"""From files to workloads: which kind a file is, and the files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mooring.api.errors import MooringError
from mooring.app.manifest_files import read_manifest
from mooring.sim import scenario
from mooring.sim.generating import ScenarioWorkload
from mooring.sim.records import Record
from mooring.sim.traces import Trace, read_mapping
from mooring.sim.workload import Workload

SCENARIOS = (".yaml", ".yml", ".json")


def load_workload(path: Path, mapping: Path | None = None, *, as_scheduled: bool = False) -> Workload:
    """The workload in a file, by its name: a scenario, a record, or with a mapping a trace."""
    if not path.exists():
        raise MooringError(f"{path} cannot be read: there is no such file")
    ending = "".join(path.suffixes[-2:]).removesuffix(".gz")
    if ending.endswith(".csv"):
        if mapping is None:
            raise MooringError(f"{path}: what do its columns mean? Say it in a file, with --mapping FILE")
        return Trace(path, read_mapping(_read(mapping), str(mapping)), str(mapping))
    if mapping is not None:
        raise MooringError(f"{path}: a mapping belongs to a trace, whose name ends in .csv or .csv.gz")
    if ending.endswith(".jsonl"):
        return Record(path, as_scheduled=as_scheduled)
    if as_scheduled:
        raise MooringError(f"{path}: only a record, whose name ends in .jsonl, has placements to keep")
    if ending.endswith(SCENARIOS):
        return read_scenario(_read(path), str(path), path.parent)
    raise MooringError(
        f"{path}: not known what this is by its name; scenarios end in .yaml, records in .jsonl or "
        ".jsonl.gz, traces in .csv or .csv.gz"
    )


def read_scenario(text: str | bytes, source: str, folder: Path) -> ScenarioWorkload:
    """A scenario; the files that it names are looked for in the folder."""

    def read_objects(name: str) -> list[dict[str, Any]]:
        return read_manifest(folder / name)

    return ScenarioWorkload(scenario.read(text, source, read_objects))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MooringError(f"{path} cannot be read: {error.strerror}") from error
