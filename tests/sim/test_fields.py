"""Files of simulations: mistakes are named with their place and the way out."""

import pytest

from moorage.sim.fields import FieldError, Fields, Rate, Seconds, parse_yaml, read_fields


class Inner(Fields):
    long_name: Seconds = Seconds(0)


class Outer(Fields):
    items: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    either: str | Inner | None = None
    rate: Rate | None = None


@pytest.mark.parametrize(
    ("written", "seconds"), [(90, 90.0), (1.5, 1.5), ("90s", 90.0), ("1h30m", 5400.0), ("250ms", 0.25), ("0", 0.0)]
)
def test_durations_are_seconds_or_text(written, seconds):
    assert read_fields(Inner, {"longName": written}, "f").long_name == seconds


@pytest.mark.parametrize(("written", "rate"), [(2, 2.0), ("10/s", 10.0), ("600 / m", 10.0), ("36/h", 0.01)])
def test_rates_are_so_many_in_a_second(written, rate):
    assert read_fields(Outer, {"rate": written}, "f").rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"itms": []}, 'f: itms: unknown field; did you mean "items"?'),
        ({"items": [{}, {"x": 1}]}, "f: items[1].x: unknown field; known fields are longName"),
        ({"either": {"x": 1}}, "f: either.x: unknown field; known fields are longName"),
        ({"items": [{"longName": "soon"}]}, "'soon' is not a duration; write seconds, or 90s, 15m, 1h30m"),
        ({"items": [{"longName": True}]}, "True is not a duration"),
        ({"rate": "fast"}, "'fast' is not a rate; write a number per second, or 10/s, 600/m, 100/h"),
        ({"rate": 0}, "0 is not a rate"),
        ({"rate": "1.2.3/s"}, "is not a rate"),
        ({"items": 3}, "f: items: Expected `array`, got `int`"),
    ],
    ids=["close", "item", "union", "duration", "boolean", "rate", "zero", "number", "type"],
)
def test_mistakes_name_the_file_the_field_and_what_is_known(raw, message):
    with pytest.raises(FieldError) as caught:
        read_fields(Outer, raw, "f")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [("a: [", "f is not YAML"), ("- 1", "f: must be a YAML mapping"), ("", "f: must be")]
)
def test_a_file_that_is_no_mapping_is_refused(text, message):
    with pytest.raises(FieldError, match=message):
        parse_yaml(text, "f")
