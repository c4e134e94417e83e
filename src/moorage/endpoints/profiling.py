"""Samples of the stacks of all threads, and their forms for flame graphs.

The sampler runs on the loop of the endpoints. It takes a sample whenever Python lets that thread run, so time
in a C function that holds the interpreter lock counts for the line that called it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from types import FrameType
from typing import Any, NamedTuple

PERIOD_SECONDS = 0.01
"""Time between two samples. A sample of ten threads takes about 0.1 ms."""
MAX_FRAMES = 128
"""Outer frames of deeper stacks are left out."""
MAX_STACKS = 20_000
"""Different stacks that a profile keeps; samples of others count as OTHER."""
OTHER = "(other stacks)"


class StackFrame(NamedTuple):
    """A function in a stack."""

    name: str
    file: str
    line: int


Stack = tuple[StackFrame, ...]
"""The functions of a thread, the outermost first."""


class StackProfile(NamedTuple):
    """How often each stack of each thread was seen."""

    seconds: float
    samples: int
    stacks: Counter[tuple[str, Stack]]
    """(name of the thread, stack) → number of samples."""

    def collapsed(self) -> str:
        """Return one line for each stack, as flamegraph.pl and speedscope read them."""
        lines = (
            f"{thread};{';'.join(frame.name for frame in stack)} {count}"
            for (thread, stack), count in self.stacks.most_common()
        )
        return "".join(f"{line}\n" for line in lines)

    def speedscope(self) -> dict[str, Any]:
        """Return a file for speedscope.app, with one profile for each thread."""
        frames: dict[StackFrame, int] = {}
        threads: dict[str, tuple[list[list[int]], list[float]]] = {}
        share = self.seconds / max(1, self.samples)
        for (thread, stack), count in self.stacks.most_common():
            samples, weights = threads.setdefault(thread, ([], []))
            samples.append([frames.setdefault(frame, len(frames)) for frame in stack])
            weights.append(count * share)
        profiles = [
            {
                "type": "sampled",
                "name": thread,
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
            for thread, (samples, weights) in threads.items()
        ]
        return {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [frame._asdict() for frame in frames]},
            "profiles": profiles,
        }


async def sample(seconds: float) -> StackProfile:
    """Sample the stacks of all other threads for a while."""
    own, began = threading.get_ident(), time.monotonic()
    stacks: Counter[tuple[str, Stack]] = Counter()
    samples = 0
    while (passed := time.monotonic() - began) < seconds:
        samples += 1
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != own:
                seen = (names.get(ident, f"thread {ident}"), stack_of(frame))
                stacks[seen if seen in stacks or len(stacks) < MAX_STACKS else (seen[0], _OTHER)] += 1
        await asyncio.sleep(min(PERIOD_SECONDS, seconds - passed))
    return StackProfile(time.monotonic() - began, samples, stacks)


_OTHER: Stack = (StackFrame(OTHER, "", 0),)


def stack_of(frame: FrameType | None) -> Stack:
    """Return the functions of a stack, the outermost first."""
    found: list[StackFrame] = []
    while frame is not None and len(found) < MAX_FRAMES:
        code = frame.f_code
        name = f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}"
        # Separators of the collapsed form must not occur in names.
        found.append(StackFrame(name.replace(";", ",").replace(" ", "_"), code.co_filename, code.co_firstlineno))
        frame = frame.f_back
    return tuple(reversed(found))
