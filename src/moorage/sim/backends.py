"""Distributes many runs over local processes, or over an existing Dask or Ray cluster.

Local processes and Dask are used through joblib. On Ray, the runs are Ray tasks, which are repeated if a worker dies;
Ray's joblib backend would give up. The workers of a cluster need Moorage, the plugins, and the named files under the
same paths. They send results back when a run ends, so they need not share the folder of the results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from moorage.api.errors import MoorageError

DASK, RAY = "dask://", "ray://"
Files = dict[str, bytes]
"""The files of a result by name, or nothing if they are in their folder already."""
RETRIES = 3
"""How often Ray repeats a run whose worker died, as Dask does."""


class Run(Protocol):
    """A run that can be sent to another process."""

    @property
    def folder(self) -> Path:
        """The folder for the result."""
        ...

    def into(self, folder: Path) -> Run:
        """Return the same run with another folder."""
        ...

    def run(self) -> object: ...


def spread(runs: Sequence[Run], workers: int, backend: str = "") -> Iterator[None]:
    """Do all runs, yielding once for each that is done.

    Ends early if a local process dies; some runs then have no result. `workers` is the number of local
    processes, or -1 for one per core. A cluster decides this itself.
    """
    ended = _on_ray(runs, backend) if backend.startswith(RAY) else _by_joblib(runs, workers, backend)
    try:
        for place, files in ended:
            _keep(runs[place].folder, files)
            yield
    except ImportError as error:
        if not backend:
            raise
        raise MoorageError(
            f"--backend: a worker of {backend} failed: {error}. Install the same version of Moorage there."
        ) from error


def _by_joblib(runs: Sequence[Run], workers: int, backend: str) -> Iterator[tuple[int, Files]]:
    try:
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError
    except ImportError as error:
        raise MoorageError("Several runs at a time need joblib. Install moorage[sim], or use --jobs 1.") from error
    with _connected(backend):
        work = joblib.delayed(_elsewhere if backend else _here)
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
        try:
            yield from parallel(work(place, run) for place, run in enumerate(runs))
        except TerminatedWorkerError:
            return


@contextmanager
def _connected(backend: str) -> Iterator[None]:
    """Connect joblib to Dask, which repeats the runs of a lost worker."""
    if not backend:
        yield
        return
    if not backend.startswith(DASK):
        raise MoorageError(
            f"--backend: {backend!r} is not a backend; use {DASK}HOST:PORT of a Dask scheduler, or "
            f"{RAY}HOST:PORT of a Ray head"
        )
    try:
        import distributed
        import joblib
    except ImportError as error:
        raise MoorageError("--backend: Dask is not installed. Install moorage[dask].") from error
    connect: Any = distributed.Client
    try:
        client = connect(f"tcp://{backend.removeprefix(DASK)}", timeout=10)
    except OSError as error:
        raise MoorageError(f"--backend: cannot reach a Dask scheduler at {backend}: {error}") from error
    with client, joblib.parallel_config(backend="dask"):
        try:
            yield
        except distributed.KilledWorker as error:
            raise _lost(backend, error) from error


def _on_ray(runs: Sequence[Run], backend: str) -> Iterator[tuple[int, Files]]:
    try:
        import ray

        connection = ray.init(backend)
    except ImportError as error:
        raise MoorageError(f"--backend: Ray is not installed ({error}). Install moorage[ray].") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise MoorageError(f"--backend: cannot use a Ray cluster at {backend}: {error}") from error
    with connection:
        work: Any = ray.remote(max_retries=RETRIES)(_elsewhere)
        running = [work.remote(place, run) for place, run in enumerate(runs)]
        while running:
            ended, running = ray.wait(running)
            try:
                yield ray.get(ended[0])
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                raise _lost(backend, error) from error


def _lost(backend: str, error: Exception) -> MoorageError:
    return MoorageError(
        f"--backend:  the workers of {backend} died repeatedly while doing a run, most likely for lack of "
        f"memory: {' '.join(str(error).split())}"
    )


def _here(place: int, run: Run) -> tuple[int, Files]:
    run.run()
    return place, {}


def _elsewhere(place: int, run: Run) -> tuple[int, Files]:
    """Do a run on a worker and return the files of its result."""
    with tempfile.TemporaryDirectory(prefix="moorage-simulate-") as folder:
        run.into(Path(folder)).run()
        return place, {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _keep(folder: Path, files: Files) -> None:
    if files:
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
