"""Checks that fail a test instead of letting it hang or mislead: a pod that is tried in a loop while virtual time
stands still, and reused answers that differ from fresh ones (`verify_reuse` repeats every attempt that starts from a
baseline)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np

from moorage.framework.ports import Clock
from moorage.framework.status import Status
from moorage.runtime.attempt import Attempt
from moorage.runtime.reuse.cache import NoReuse
from moorage.scheduler.choosing import NodeChooser
from moorage.scheduler.records import RecordRing

ATTEMPTS = 100
"""More attempts of one pod at one virtual instant are a loop."""


def refuse_circles(records: RecordRing, clock: Clock) -> None:
    """Raise an AssertionError if a pod was tried again and again at this instant."""
    now = clock.wall()
    recent = itertools.takewhile(lambda record: record.started == now, reversed(records))
    tried = Counter(record.pod for record in recent)
    pod, attempts = max(tried.items(), key=lambda item: item[1], default=("", 0))
    last = records.last(pod)
    if attempts < ATTEMPTS or last is None:
        return
    cause = last.woken_by or "nothing on record"
    who = f" (plugin {last.woken_hint!r})" if last.woken_hint else ""
    raise AssertionError(
        f"pod {pod} is tried in circles: {attempts} attempts at virtual second {clock.now():g}, each after "
        f"{cause}{who}; the last one said: {last.message or last.result}"
    )


class VerifyingChooser(NodeChooser):
    """Chooses like the scheduler, compares with an attempt without reuse, and keeps the differences."""

    def __init__(self, reuse: NoReuse) -> None:
        super().__init__(reuse)
        self._fresh = NodeChooser()
        self.differences: list[str] = []

    async def choose(self, attempt: Attempt) -> Status:
        status = await super().choose(attempt)
        if not attempt.baseline.is_empty:
            fresh = Attempt(attempt.info, attempt.profile, attempt.nodes)
            await self._fresh.choose(fresh)
            found = list(differences(attempt, fresh))
            if found:
                self.differences.append(f"pod {attempt.pod.key}: " + "; ".join(found))
        return status


def differences(reused: Attempt, fresh: Attempt) -> Iterator[str]:
    """Return what an attempt with reused answers got wrong; empty if nothing."""
    for name in reused.nodes.names:
        before, now = reused.statuses.get(name), fresh.statuses.get(name)
        if (before.code, before.reasons, before.plugin) != (now.code, now.reasons, now.plugin):
            plugin = before.plugin or now.plugin
            yield (
                f"node {name}: the kept answer is {_said(before)}, a fresh one {_said(now)}; "
                f"check sign() and reads() of {plugin}"
            )
            return
    if reused.node != fresh.node:
        suspects = ", ".join(_scored_differently(reused, fresh)) or "the plugins that score"
        yield (
            f"reused answers choose node {reused.node}, fresh ones {fresh.node}; check sign() and reads() of {suspects}"
        )


def _said(status: Status) -> str:
    return f"{status.code.label} by {status.plugin} ({status.message})" if status.plugin else "feasible"


def _scored_differently(reused: Attempt, fresh: Attempt) -> Iterator[str]:
    """Return the plugins whose reused scores differ from fresh ones."""
    kept = getattr(reused.baseline, "raws", None)
    if not isinstance(kept, dict) or fresh.board is None:
        return
    for column in fresh.board.columns:
        if column.step.name in kept:
            before, now = (np.broadcast_to(raw, len(fresh.ok)) for raw in (kept[column.step.name], column.raw))
            if (before != now)[fresh.ok].any():
                yield column.step.name
