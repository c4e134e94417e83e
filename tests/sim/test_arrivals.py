"""When pods arrive, and how long they run."""

from itertools import islice
from random import Random

import pytest

from moorage.sim.arrivals import Lifetime, Lognormal, Uniform, arrival_times
from moorage.sim.fields import Rate, Seconds


def times(how="fixed", seed=0, **given):
    options = {"total": None, "rate": None, "start": 0.0, "end": None, "burst": 1, "at": ()}
    return arrival_times(how, Random(seed), **{**options, **given})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (times(total=3, start=5.0), [5.0, 5.0, 5.0]),
        (times(total=3, rate=Rate(2.0), start=1.0), [1.0, 1.5, 2.0]),
        (times(rate=Rate(1.0), end=3.0), [0.0, 1.0, 2.0]),
        (times("burst", total=5, rate=Rate(1.0), burst=2), [0.0, 0.0, 2.0, 2.0, 4.0]),
        (times("at", total=2, at=(Seconds(9), Seconds(4))), [4.0, 4.0, 9.0, 9.0]),
        (times("at", at=(Seconds(4), Seconds(9)), end=9.0), [4.0]),
    ],
    ids=["at once", "rate", "end", "burst", "at", "at before the end"],
)
def test_arrivals_come_in_order(found, expected):
    assert list(found) == expected


def test_poisson_arrivals_have_the_rate_and_follow_the_seed():
    drawn = list(islice(times("poisson", rate=Rate(10.0)), 20_000))
    assert drawn == sorted(drawn)
    assert drawn[-1] == pytest.approx(2000, rel=0.05)
    assert drawn == list(islice(times("poisson", rate=Rate(10.0)), 20_000))
    assert drawn[:5] != list(islice(times("poisson", rate=Rate(10.0), seed=1), 5))


@pytest.mark.parametrize(
    ("lifetime", "mean"),
    [
        (Lifetime(fixed=Seconds(60)), 60.0),
        (Lifetime(exponential=Seconds(60)), 60.0),
        (Lifetime(uniform=Uniform(min=Seconds(20), max=Seconds(100))), 60.0),
        (Lifetime(lognormal=Lognormal(median=Seconds(60), sigma=0.5)), 68.0),
    ],
    ids=["fixed", "exponential", "uniform", "lognormal"],
)
def test_lifetimes_have_their_mean(lifetime, mean):
    assert lifetime.problem() == ""
    random = Random(1)
    assert sum(lifetime.draw(random) for _ in range(20_000)) / 20_000 == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize(
    ("lifetime", "problem"),
    [
        (Lifetime(), "needs one of fixed, exponential, uniform, lognormal, got none"),
        (Lifetime(fixed=Seconds(1), exponential=Seconds(1)), "got fixed, exponential"),
        (Lifetime(exponential=Seconds(0)), "exponential must be more than 0"),
        (Lifetime(uniform=Uniform(min=Seconds(3), max=Seconds(2))), "uniform needs 0 <= min <= max"),
    ],
    ids=["none", "two", "zero", "bounds"],
)
def test_lifetimes_that_cannot_be_drawn_are_refused(lifetime, problem):
    assert problem in lifetime.problem()
