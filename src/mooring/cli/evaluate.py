"""`mooring evaluate`: what the scheduler would say, offline, one JSON line per case."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mooring.app.evaluating import evaluate as judge
from mooring.cli.printing import fail


def evaluate(
    file: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="Cases, a JSON object a line, plain or .gz; - reads standard input."
        ),
    ] = "-",
) -> None:
    """Judge a pod on a cluster without any API server.

    Each line of the input is one case: [bold]id[/bold] and [bold]input[/bold] with the nodes, pods, claims
    and other objects of a cluster, and the [bold]pod[/bold] in question. Each line of the output has the
    answers of every plugin, the feasible nodes with their totals, and what preemption would do. A case that
    cannot be read gives a line with [bold]error[/bold]; the others go on.
    """
    try:
        with _open(file) as lines:
            for answer in _answers(lines):
                print(json.dumps(answer, ensure_ascii=False))
    except BrokenPipeError:
        raise  # whoever reads the answers has seen enough; that is no fault of the file
    except (OSError, EOFError) as error:
        fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}")


def _open(file: str) -> io.TextIOBase | Any:
    if file == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
    path = Path(file)
    with path.open("rb") as start:
        compressed = start.read(2) == b"\x1f\x8b"
    if compressed:
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def _answers(lines: Any) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            case = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield {"id": None, "line": number, "error": f"not JSON: {error}"}
            continue
        yield (
            judge(case) if isinstance(case, dict) else {"id": None, "line": number, "error": "not an object"}
        )
