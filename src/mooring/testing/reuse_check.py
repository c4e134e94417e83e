"""A check that reused answers are those that plugins would give now: `Cluster(verify_reuse=True)`.

A plugin whose `sign` leaves out something that it reads of the pod, or whose `reads` leaves out what else its
answer depends on, is right at first and wrong for a later pod. Here every attempt that starts from a baseline
is made a second time from nothing, and the first difference is reported with the plugins that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mooring.framework.status import Status
from mooring.runtime.attempt import Attempt
from mooring.runtime.reuse.cache import NoReuse
from mooring.scheduler.choosing import NodeChooser


class VerifyingChooser(NodeChooser):
    """Chooses as the scheduler does, and keeps the differences that it finds."""

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
    """What an attempt with reused answers got wrong, in words; nothing where it got all right."""
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
            f"reused answers choose node {reused.node}, fresh ones {fresh.node}; "
            f"check sign() and reads() of {suspects}"
        )


def _said(status: Status) -> str:
    return f"{status.code.label} by {status.plugin} ({status.message})" if status.plugin else "feasible"


def _scored_differently(reused: Attempt, fresh: Attempt) -> Iterator[str]:
    """Plugins whose kept scores are not those of now."""
    kept = getattr(reused.baseline, "raws", None)
    if not isinstance(kept, dict) or fresh.board is None:
        return
    for column in fresh.board.columns:
        if column.step.name in kept:
            before, now = (
                np.broadcast_to(raw, len(fresh.ok)) for raw in (kept[column.step.name], column.raw)
            )
            if (before != now)[fresh.ok].any():
                yield column.step.name
