"""A run at a pace waits for its virtual seconds to be due, and decides as one without."""

import pytest

from moorage import Simulation
from moorage.sim.driving import RealTimePace

SCENARIO = """
nodes: [{name: node, count: 3, allocatable: {cpu: 4, memory: 16Gi}}]
workloads: [{name: a, rate: 2/m, shape: {cpu: 500m}, lifetime: {fixed: 3m}}]
duration: 10m
"""


class RealTime:
    """A clock of which every look takes `look` seconds."""

    def __init__(self, look=0.0):
        self.seconds, self.look, self.slept = 100.0, look, []

    def now(self):
        self.seconds += self.look
        return self.seconds

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.seconds += seconds


@pytest.mark.parametrize("speed", [0.5, 1, 10])
def test_a_run_takes_as_much_real_time_as_its_speed_says_and_decides_the_same(speed):
    real = RealTime()
    paced = Simulation(SCENARIO).run(pace=RealTimePace(speed, real.now, real.sleep))
    assert real.seconds - 100 == pytest.approx(600 / speed, abs=0.01)
    assert min(real.slept) > 0
    assert list(paced.placements()) == list(Simulation(SCENARIO).run().placements())


def test_time_that_was_lost_is_made_up_for():
    real = RealTime(look=0.5)
    pace = RealTimePace(1.0, real.now, real.sleep)
    for virtual in (0.0, 0.25, 0.5, 3.0):
        pace(virtual)
    assert real.slept == [1.5]  # until 3 seconds after the first look; the others were late
