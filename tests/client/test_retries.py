"""Delays after failures."""

from random import Random

import pytest

from moorage.client.pacing import Backoff


class StillClock:
    """A clock that moves only when the test moves it."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


class Fixed(Random):
    """Draws the same number each time."""

    def __init__(self, draw: float) -> None:
        super().__init__()
        self.draw = draw

    def random(self) -> float:
        return self.draw


@pytest.mark.parametrize(("draw", "share"), [(0.0, 1.0), (0.999999, 2.0)], ids=["shortest", "longest"])
def test_delays_double_up_to_the_cap(draw, share):
    clock: object = StillClock()
    backoff = Backoff(clock, Fixed(draw))  # type: ignore[arg-type]  # only `now` is read
    steps = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert [round(backoff.next() / share, 3) for _ in steps] == steps
