"""Checks that fail a test instead of letting it hang or mislead: a hook that does not return, a pod that
is tried in a loop while virtual time stands still, and reused answers that differ from fresh ones
(`verify_reuse` repeats every attempt that starts from a baseline)."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType, TracebackType

import numpy as np

from moorage.framework.ports import Clock
from moorage.framework.status import Status
from moorage.run.watchdog import hook_of
from moorage.runtime.attempt import Attempt
from moorage.runtime.reuse.cache import NoReuse
from moorage.scheduler.choosing import NodeChooser
from moorage.scheduler.records import RecordRing
from moorage.sim.loop import VirtualLoop

HOOK_LIMIT = 30.0
"""Seconds of real time that one call may take; hooks take microseconds."""
LOOKS = 10
"""How many times the limit is checked during its time."""
ATTEMPTS = 100
"""More attempts of one pod at one virtual instant are a loop."""
DEBUGGERS = ("bdb", "pdb", "IPython", "pydevd", "_pydevd_bundle")


class NeverReturns(KeyboardInterrupt):
    """Raised inside the hook. It is a KeyboardInterrupt, because only that ends an event loop and is not
    treated as a failure of the plugin, after which the pod would be tried again."""


class HookLimit:
    """A context for a run of the loop that raises NeverReturns if one callback takes longer than the limit.

    It uses SIGALRM, so it works only in the main thread, and not while another timer runs (pytest-timeout)."""

    def __init__(self, loop: VirtualLoop, seconds: float | None) -> None:
        self._loop = loop
        self._seconds = seconds or 0.0
        self._armed = False

    def __enter__(self) -> None:
        on_main = threading.current_thread() is threading.main_thread()
        if not self._seconds or not on_main or signal.getitimer(signal.ITIMER_REAL)[0]:
            return
        self._seen, self._since = self._loop.progress, time.monotonic()
        self._before = signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, self._seconds / LOOKS, self._seconds / LOOKS)
        self._armed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._armed:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)

    def _look(self, number: int, frame: FrameType | None) -> None:
        progress, now = self._loop.progress, time.monotonic()
        if progress != self._seen or _is_debugged(frame):
            self._seen, self._since = progress, now
        elif now - self._since >= self._seconds:
            plugin, hook = hook_of(frame)
            who = f"plugin {plugin!r}: {hook}" if plugin else "a call of the scheduler"
            raise NeverReturns(f"{who} has not returned after {self._seconds:g} s of real time")


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in DEBUGGERS:
            return True
        frame = frame.f_back
    return False


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
