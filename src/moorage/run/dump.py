"""The answer to SIGUSR2: cache and queue are written to the log and compared with the API server.

Follows pkg/scheduler/backend/cache/debugger. Nodes and pods are logged one per line, in slices between two
scheduling cycles, so that a dump of a large cluster does not hold up scheduling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.api.quantity import format_amount
from moorage.framework.ports import Clock
from moorage.run.comparer import Comparer, between_cycles
from moorage.scheduler.engine import Engine
from moorage.telemetry import logs

_log = logs.get(__name__)

MAX_PODS = 500
"""Pods of one node that are named."""


async def dump(engine: Engine, clock: Clock, comparer: Comparer | None) -> None:
    """Log all nodes and pending pods, then compare. `comparer` is None while this replica does not lead."""
    await between_cycles(engine, clock, _nodes(engine))
    await between_cycles(engine, clock, _queue(engine))
    if comparer is None:
        _log.info(0, "Dump complete; a standby does not compare its cache with the API server")
        return
    await comparer.round()
    _log.info(0, "Dump complete; cache and queue are compared with the API server")


def _nodes(engine: Engine) -> Iterator[None]:
    table = engine.cache.table
    names = list(table.nodes().names)
    _log.info(0, "Dump of cached nodes", nodes=len(names))
    for name in names:
        row = table.row_of(name)
        if row < 0:
            continue  # deleted since the dump began
        view = table.view(row)
        pods = [pod.key for pod in view.pods]
        more = f" and {len(pods) - MAX_PODS} more" if len(pods) > MAX_PODS else ""
        _log.info(
            0,
            "Cached node",
            node=name,
            allocatable=_text(view.allocatable),
            requested=_text(view.requested),
            pods=f"{len(pods)}: {' '.join(pods[:MAX_PODS])}{more}",
        )
        yield


def _text(amounts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={format_amount(name, amount)}" for name, amount in sorted(amounts.items()) if amount)


def _queue(engine: Engine) -> Iterator[None]:
    pending = list(engine.queue.pending)
    _log.info(0, "Dump of scheduling queue", pods=len(pending))
    for info, location in pending:
        _log.info(0, "Queued pod", pod=info.pod.key, place=location.place, attempts=info.attempts)
        yield
