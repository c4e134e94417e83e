"""The bucket of events per object: a burst, then one every five minutes; others are not concerned."""

from moorage.client.event_series import BURST, REMEMBERED, SECONDS_PER_TOKEN, SpamFilter


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


def test_a_burst_and_then_one_per_period():
    clock = Clock()
    spam = SpamFilter(clock.now)
    assert [spam.admits("a") for _ in range(BURST + 2)] == [True] * BURST + [False, False]
    assert spam.admits("b"), "another object has a bucket of its own"
    clock.time = SECONDS_PER_TOKEN
    assert [spam.admits("a"), spam.admits("a")] == [True, False]
    clock.time *= 1000
    assert [spam.admits("a") for _ in range(BURST + 1)] == [True] * BURST + [False]


def test_the_number_of_buckets_is_bounded():
    spam = SpamFilter(Clock().now, burst=1)
    for number in range(REMEMBERED + 10):
        spam.admits(str(number))
    assert not spam.admits(str(REMEMBERED + 9))
    assert spam.admits("0"), "forgotten"
