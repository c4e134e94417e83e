"""The limit on repeated complaints."""

from mooring.telemetry.throttle import Throttle


def test_a_burst_each_period_and_the_rest_is_counted():
    time = [0.0]
    throttle = Throttle(lambda: time[0], seconds=60.0, burst=2)
    assert [throttle.admits() for _ in range(5)] == [True, True, False, False, False]
    time[0] = 60.0
    assert throttle.admits()
    assert throttle.take_suppressed() == 3
    assert throttle.take_suppressed() == 0
