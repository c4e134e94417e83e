"""`moorage evaluate`: what the scheduler would say, one JSON line per case."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration
from moorage.cli import options
from moorage.cli.options import configured, from_file
from moorage.cli.printing import fail
from moorage.explain.evaluate import Evaluator, default_configuration
from moorage.snapshots import unpacking
from moorage.snapshots.cluster import ClusterObjects, read_cluster
from moorage.snapshots.manifests import read_manifest


def evaluate(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Cases, a JSON object a line, plain or .gz; - reads standard input.")
    ] = "-",
    config: options.Config = None,
    profile: options.ProfileName = "",
    plugins: options.Plugins = None,
    plugin_path: options.PluginPath = None,
    emulated_version: options.EmulatedVersion = "",
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="Judge on the live cluster that this file leads to.")
    ] = "",
    context: Annotated[str, typer.Option(metavar="NAME", help="Judge on the live cluster of this context.")] = "",
    snapshot: options.SnapshotFile = None,
    pods: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Pods to judge on a live cluster or a snapshot, YAML or JSON, instead of cases. Repeatable.",
        ),
    ] = None,
) -> None:
    """Judge pods on a cluster in a file, or on a live one, and write nothing anywhere.

    Each line of the input is one case: [bold]id[/bold] and [bold]input[/bold] with the nodes, pods, claims
    and other objects of a cluster, and the [bold]pod[/bold] in question. Each line of the output has the
    answers of every plugin, the feasible nodes with their totals, and what preemption would do. A case that
    cannot be read gives a line with [bold]error[/bold]; the others go on. With --kubeconfig, --context or -f
    the cluster is listed once from its API server, with --snapshot it is read from a file of `moorage snapshot`,
    and cases have a pod alone.
    """
    if pods and file != "-":
        fail(f"-f and the cases of {file} exclude each other: drop one")
    own = configured(config, profile, plugins, plugin_path, emulated_version)
    own = own or default_configuration(emulated_version)
    try:
        live = _read_live(own, kubeconfig, context, snapshot) if kubeconfig or context or snapshot or pods else None
        judge = Evaluator(own, live)
        if pods and live is not None:
            _print(judge(case) for case in _cases(pods, live.namespace))
            return
    except MoorageError as error:
        fail(str(error))
    try:
        with _open(file) as lines:
            _print(_answers(judge, unpacking.lines(lines, file, unpacking.limit())))
    except BrokenPipeError:
        raise  # whoever reads the answers has seen enough; that is no fault of the file
    except MoorageError as error:
        fail(str(error))
    except (OSError, EOFError) as error:
        fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}")


def _read_live(own: Configuration, kubeconfig: str, context: str, snapshot: Path | None) -> ClusterObjects:
    if snapshot is not None and (kubeconfig or context):
        fail("--snapshot excludes --kubeconfig and --context")
    resources = own.resources()
    if snapshot is not None:
        return from_file(snapshot, resources)
    return asyncio.run(read_cluster(resources, kubeconfig, context))


def _cases(files: Iterable[Path], namespace: str) -> Iterator[dict[str, Any]]:
    for path in files:
        for pod in read_manifest(path):
            meta = pod["metadata"]
            meta["namespace"] = meta.get("namespace") or namespace
            name = f"{meta['namespace']}/{meta.get('name') or meta['generateName']}"
            if pod["kind"] != "Pod":
                raise MoorageError(f"the file {path} has the {pod['kind']} {name}: only pods are judged")
            yield {"id": name, "input": {"pod": pod}}


def _print(answers: Iterable[dict[str, Any]]) -> None:
    for answer in answers:
        print(json.dumps(answer, ensure_ascii=False))


def _open(file: str) -> IO[str]:
    if file == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
    path = Path(file)
    with path.open("rb") as start:
        compressed = start.read(2) == b"\x1f\x8b"
    if compressed:
        return cast(IO[str], gzip.open(path, "rt", encoding="utf-8", errors="replace"))
    return path.open(encoding="utf-8", errors="replace")


def _answers(judge: Evaluator, lines: Any) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            case = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield {"id": None, "line": number, "error": f"not JSON: {error}"}
            continue
        if not isinstance(case, dict):
            yield {"id": None, "line": number, "error": "not an object"}
        else:
            yield judge(case)
