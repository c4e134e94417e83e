"""`moorage bench hostile`: every field works, and the exponent is that of the growth. The speed does not matter."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from moorage.api import decoding
from moorage.api.resources import PODS
from moorage.bench import hostile
from moorage.bench.hostile import Growth, HostileBench, HostileWorld, exponent_of, proportional_work
from moorage.bench.hostile_pods import FIELDS
from moorage.bench.world import raw_pod
from moorage.cli.root import app
from tests.cli.running import runner


@pytest.fixture(scope="module")
def world() -> HostileWorld:
    return HostileWorld(6)


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_goes_through_all_steps_and_leaves_nothing(world: HostileWorld, name: str) -> None:
    engine = world.world.engine
    before = len(engine.cache), sum(1 for _ in engine.stores[PODS].list())
    seconds = asyncio.run(world.measure(name, 20))

    assert tuple(seconds) == hostile.STEPS
    assert all(value >= 0 for value in seconds.values())
    assert (len(engine.cache), sum(1 for _ in engine.stores[PODS].list())) == before
    assert not engine.cache.corrections
    assert not list(engine.cache.expected())


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_grows_with_its_size(name: str) -> None:
    def filled(size: int) -> bytes:
        pod = raw_pod("p", labels={"app": "p"})
        FIELDS[name](pod, "t", size)
        return decoding.encode(decoding.convert(PODS, pod))

    # A scheduler does not read imagePullSecrets; they cost what it takes to skip them.
    assert len(filled(100)) > len(filled(10)) + 90 or name == "image-pull-secrets"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_growth(power: float) -> None:
    sizes = (10, 100, 1000, 2000, 4000)
    found = exponent_of(sizes, [0.01 * size**power for size in sizes], sizes)
    assert found == pytest.approx(power)


def test_a_single_step_is_not_growth() -> None:
    sizes = (10, 1000, 2000, 4000)
    assert exponent_of(sizes, [0.1, 1.0, 3.0, 6.0], sizes) == pytest.approx(1.0)


@pytest.mark.parametrize(("machine", "expected"), [(1.2, 1.8), (1.0, 2.0), (0.5, 2.0)])
def test_what_the_machine_adds_is_taken_off(machine: float, expected: float) -> None:
    sizes = (10, 1000, 2000, 4000)
    found = exponent_of(sizes, [0.01 * size**2 for size in sizes], [size**machine for size in sizes])
    assert found == pytest.approx(expected)


def test_the_yardstick_takes_time() -> None:
    assert proportional_work(1000) > 0


def test_times_below_the_noise_have_no_exponent() -> None:
    assert exponent_of((10, 1000, 2000), [0.0001, 0.0005, 0.5], (1, 2, 3)) is None
    assert not Growth("f", "attempt", (10,), (0.1,), None).is_too_steep


class TimedWorld(HostileWorld):
    """A world whose steps take size² milliseconds."""

    def __init__(self) -> None:
        super().__init__(2)
        self.asked: list[int] = []

    async def measure(self, name: str, size: int) -> dict[str, float]:
        self.asked.append(size)
        return dict.fromkeys(hostile.STEPS, 0.001 * size**2)


def test_growth_that_is_too_steep_is_measured_again_and_stops_in_time() -> None:
    bench = HostileBench(2, 640, limit=100.0)
    bench.world = TimedWorld()
    growths = asyncio.run(bench.grow("labels"))

    assert all(growth.is_too_steep for growth in growths)
    # 320 entries would take five times 102 seconds.
    assert {growth.sizes for growth in growths} == {(10, 160)}
    assert all(growth.stopped for growth in growths)
    assert max(len(list(group)) for _, group in itertools.groupby(sorted(bench.world.asked))) > 1


def test_sizes_end_at_the_largest_pod_that_the_api_server_stores() -> None:
    bench = HostileBench(2, 10_000)
    assert bench.sizes_of("tolerations")[-1] == 10_000
    largest = bench.sizes_of("anti-affinity-namespace-selectors")[-1]
    assert bench.world.fits("anti-affinity-namespace-selectors", largest)
    assert not bench.world.fits("anti-affinity-namespace-selectors", largest * 11 // 10)


def test_the_command_prints_a_table_or_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    small = ["bench", "hostile", "labels", "tolerations", "--nodes", "3", "--entries", "40"]
    result = runner.invoke(app, small)
    assert result.exit_code == 0, result.output
    for text in ("3 nodes", "labels", "tolerations", "attempt", "exponent"):
        assert text in result.stdout
    found = json.loads(runner.invoke(app, [*small, "-o", "json"]).stdout)
    assert {entry["field"] for entry in found} == {"labels", "tolerations"}
    assert {entry["step"] for entry in found} == set(hostile.STEPS)


def test_an_exponent_above_the_limit_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async def grow(self: HostileBench, name: str) -> list[Growth]:
        return [Growth(name, "attempt", (10, 100), (0.1, 10.0), 2.0)]

    monkeypatch.setattr(HostileBench, "grow", grow)
    result = runner.invoke(app, ["bench", "hostile", "labels", "--nodes", "2"])
    assert result.exit_code == 1
    assert "The time grows faster than the number of entries: labels (attempt)." in result.stderr


def test_an_unknown_field_is_reported_with_the_known_ones() -> None:
    result = runner.invoke(app, ["bench", "hostile", "nope"])
    assert result.exit_code == 1
    assert "There is no field 'nope'" in result.stderr
    assert all(name in result.stderr for name in FIELDS)
