"""Where many runs are done: in processes of this machine, or on an existing Dask cluster.

Both through joblib. The workers of a cluster need Mooring, the plugins, and the named files under the same
paths; results are sent back, so they need not share the folder of the results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mooring.api.errors import MooringError

DASK = "dask://"


class Run(Protocol):
    """One run, which can be sent to another process."""

    @property
    def folder(self) -> Path:
        """Where its result goes."""
        ...

    def into(self, folder: Path) -> Run:
        """With another folder."""
        ...

    def run(self) -> object: ...


def spread(runs: Sequence[Run], workers: int, backend: str = "") -> Iterator[None]:
    """Do all of them, one item for each that is done. Ends early when a process of this machine dies; then
    some have no result. `workers` processes, -1 for as many as there are cores; a cluster has its own."""
    try:
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError
    except ImportError as error:
        raise MooringError(
            "several runs at a time need joblib: install mooring[sim], or say --jobs 1"
        ) from error
    with _connected(backend):
        work = joblib.delayed(_elsewhere if backend else _here)
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
        try:
            for place, files in parallel(work(place, run) for place, run in enumerate(runs)):
                _keep(runs[place].folder, files)
                yield
        except TerminatedWorkerError:
            return


@contextmanager
def _connected(backend: str) -> Iterator[None]:
    """What joblib does meanwhile is done there."""
    if not backend:
        yield
        return
    if not backend.startswith(DASK):
        raise MooringError(f"--backend: {backend!r} is not known; write {DASK}HOST:PORT of a Dask scheduler")
    try:
        import distributed
        import joblib
    except ImportError as error:
        raise MooringError("--backend: Dask is not installed; install mooring[dask]") from error
    try:
        client = distributed.Client(f"tcp://{backend.removeprefix(DASK)}", timeout=10)
    except OSError as error:
        raise MooringError(f"--backend: no Dask scheduler answers at {backend}: {error}") from error
    with client, joblib.parallel_config(backend="dask"):
        yield


def _here(place: int, run: Run) -> tuple[int, dict[str, bytes]]:
    run.run()
    return place, {}


def _elsewhere(place: int, run: Run) -> tuple[int, dict[str, bytes]]:
    """The files of the result."""
    with tempfile.TemporaryDirectory(prefix="mooring-simulate-") as folder:
        run.into(Path(folder)).run()
        return place, {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _keep(folder: Path, files: dict[str, bytes]) -> None:
    if files:
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
