"""The distributions of arrival times and lifetimes in scenarios, drawn from a seeded generator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice
from random import Random
from typing import Literal

from moorage.sim.fields import Fields, Rate, Seconds

Arrival = Literal["fixed", "poisson", "burst", "at"]


class Uniform(Fields):
    """All values between two bounds are equally likely."""

    min: Seconds
    max: Seconds


class Lognormal(Fields):
    """Half of the pods run longer than `median`. `sigma` is the standard deviation of the logarithm."""

    median: Seconds
    sigma: float = 1.0


class Lifetime(Fields):
    """How long a pod runs after it was bound. Exactly one of the fields is set."""

    fixed: Seconds | None = None
    exponential: Seconds | None = None
    """The mean of the distribution."""
    uniform: Uniform | None = None
    lognormal: Lognormal | None = None

    def draw(self, random: Random) -> float:
        """Draw a lifetime in seconds."""
        if self.fixed is not None:
            return self.fixed
        if self.exponential is not None:
            return random.expovariate(1.0 / self.exponential)
        if self.uniform is not None:
            return random.uniform(self.uniform.min, self.uniform.max)
        assert self.lognormal is not None  # checked when the scenario is read
        return random.lognormvariate(math.log(self.lognormal.median), self.lognormal.sigma)

    def problem(self) -> str:
        """Return what is wrong with the fields, or an empty string."""
        given = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        if len(given) != 1:
            return f"needs one of {', '.join(self.__struct_fields__)}, got {', '.join(given) or 'none'}"
        if self.uniform is not None and not 0 <= self.uniform.min <= self.uniform.max:
            return "uniform needs 0 <= min <= max"
        value = self.lognormal.median if self.lognormal is not None else getattr(self, given[0])
        return "" if self.uniform is not None or value > 0 else f"{given[0]} must be more than 0"


def arrival_times(
    how: Arrival,
    random: Random,
    *,
    total: int | None,
    rate: Rate | None,
    start: float,
    end: float | None,
    burst: int,
    at: tuple[Seconds, ...],
) -> Iterator[float]:
    """Yield the times at which pods arrive, in order."""
    times = _times(how, random, total, rate, start, burst, at)
    for time in islice(times, None if how == "at" else total):
        if end is not None and time >= end:
            return
        yield time


def _times(
    how: Arrival,
    random: Random,
    total: int | None,
    rate: Rate | None,
    start: float,
    burst: int,
    at: tuple[Seconds, ...],
) -> Iterator[float]:
    if how == "at":
        for time in sorted(at):
            yield from [time] * (total or 1)
    elif rate is None:
        yield from (start for _ in count())
    elif how == "poisson":
        late = 0.0
        while True:
            late += random.expovariate(rate)
            yield start + late
    else:
        together = burst if how == "burst" else 1
        for number in count():
            yield start + number // together * together / rate
