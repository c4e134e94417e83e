"""Quantities: the accepted grammar, exact values, rounding, the cap, and a model made of fractions."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import contextlib
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import MoorageError, QuantityError
from moorage.api.quantity import (
    _DECIMAL_UNITS,
    _POWERS_OF_TWO,
    MAX_NANOS,
    NANO,
    format_amount,
    milli_value,
    parse,
    value,
)

G = NANO


def format_quantity(nanos: int, binary: bool = False) -> str:
    """Canonical text: the largest suffix that needs no fraction. `binary` prefers Ki, Mi and so on."""
    whole, rest = divmod(nanos, NANO)
    if binary and not rest and abs(whole) >= 1024:
        return _with_suffix(whole, [("", 1)] + [(unit, 1 << bits) for unit, bits in _POWERS_OF_TWO.items()])
    return _with_suffix(nanos, [(unit, 10 ** (power + 9)) for unit, power in _DECIMAL_UNITS])


def _with_suffix(amount: int, units: list[tuple[str, int]]) -> str:
    unit, size = max((u for u in units if amount % u[1] == 0), key=lambda u: u[1])
    return f"{amount // size}{unit}" if amount else "0"


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("1", G, id="one"),
        pytest.param(1, G, id="a JSON integer"),
        pytest.param(1.5, 3 * G // 2, id="a JSON fraction"),
        pytest.param(1e21, MAX_NANOS, id="a JSON number written with exponent"),
        pytest.param("100m", G // 10, id="milli"),
        pytest.param("1n", 1, id="nano"),
        pytest.param("1u", 1000, id="micro"),
        pytest.param("2k", 2000 * G, id="kilo"),
        pytest.param("1E", 10**18 * G, id="exa is not an exponent"),
        pytest.param("1E2", 100 * G, id="upper-case exponent"),
        pytest.param("12e-2", 12 * G // 100, id="negative exponent"),
        pytest.param("1e+3", 1000 * G, id="signed exponent"),
        pytest.param("1Ki", 1024 * G, id="kibi"),
        pytest.param("1.5Gi", 3 * 2**29 * G, id="fraction of a gibi"),
        pytest.param(".5", G // 2, id="no digit before the dot"),
        pytest.param("5.", 5 * G, id="no digit after the dot"),
        pytest.param("+5", 5 * G, id="plus sign"),
        pytest.param("-5", -5 * G, id="minus sign"),
        pytest.param("0.1n", 1, id="finer than nano rounds up"),
        pytest.param("-0.1n", -1, id="finer than nano rounds away from zero"),
        pytest.param("1e-400", 1, id="tiny exponent rounds up to one nano"),
        pytest.param("0e-400", 0, id="zero stays zero"),
        pytest.param("1e400", MAX_NANOS, id="huge exponent is capped"),
        pytest.param("1e2147483648", MAX_NANOS, id="exponent beyond 32 bits costs no time"),
        pytest.param("10Ei", MAX_NANOS, id="binary suffix is capped"),
        pytest.param("-10Ei", -MAX_NANOS, id="negative values are capped too"),
        pytest.param("9223372036854775807", MAX_NANOS, id="the cap itself"),
        pytest.param("007", 7 * G, id="leading zeros"),
        pytest.param("M", 0, id="upstream reads a bare suffix as zero"),
        pytest.param(".", 0, id="upstream reads a bare dot as zero"),
    ],
)
def test_parse_gives_exact_nano_units(text, nanos):
    assert nanos == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" 1", id="leading blank"),
        pytest.param("1Ki ", id="trailing blank"),
        pytest.param("1\n", id="trailing newline"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("NaN", id="not a number"),
        pytest.param("inf", id="infinity"),
        pytest.param(float("nan"), id="float not a number"),
        pytest.param(float("inf"), id="float infinity"),
        pytest.param("\u0661\u0662", id="Arabic digits"),
        pytest.param("1\u0660m", id="an Arabic digit inside"),
        pytest.param("1_000", id="underscore"),
        pytest.param("1.1.M", id="two dots"),
        pytest.param("1+1.0M", id="sign inside"),
        pytest.param("0.1mi", id="unknown suffix"),
        pytest.param("1i", id="bare i"),
        pytest.param("1ki", id="lower-case kibi"),
        pytest.param("1e", id="exponent without digits"),
        pytest.param("-3.01e-", id="exponent with only a sign"),
        pytest.param("1e1.5", id="fractional exponent"),
        pytest.param("1e99999999999999999999", id="exponent beyond 64 bits"),
        pytest.param("--1", id="two signs"),
        pytest.param("aoeu", id="letters"),
        pytest.param("1" * 1001, id="over-long text"),
        pytest.param(True, id="a boolean"),
    ],
)
def test_parse_refuses_what_upstream_refuses(text):
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, MoorageError)


def test_the_error_names_the_text_and_stays_short():
    with pytest.raises(QuantityError, match="'12x' is not a quantity"):
        parse("12x")
    with pytest.raises(QuantityError) as caught:
        parse("x" * 100_000)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("1", 1000, 1),
        ("1m", 1, 1),
        ("1n", 1, 1),
        ("1500m", 1500, 2),
        ("-1n", -1, -1),
        ("0", 0, 0),
        ("1.1Ki", 1126400, 1127),
    ],
)
def test_values_round_away_from_zero(text, milli, whole):
    assert (milli, whole) == (milli_value(text), value(text))


@pytest.mark.parametrize(
    ("text", "binary", "canonical"),
    [
        ("1.5", False, "1500m"),
        ("1.5Gi", True, "1536Mi"),
        ("1024", True, "1Ki"),
        ("1000", True, "1k"),
        ("1000", False, "1k"),
        ("1500000", False, "1500k"),
        ("0", True, "0"),
        ("-2000", False, "-2k"),
        ("0.5Ki", True, "512"),
        ("1025.5", True, "1025500m"),
    ],
)
def test_format_gives_the_canonical_text(text, binary, canonical):
    assert canonical == format_quantity(parse(text), binary)


_SUFFIXES = {
    "": Fraction(1),
    **{unit: Fraction(10) ** power for unit, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{f"{unit}i": Fraction(1024) ** (n + 1) for n, unit in enumerate("KMGTPE")},
}


@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.text("0123456789", max_size=25),
    part=st.none() | st.text("0123456789", max_size=25),
    suffix=st.sampled_from(sorted(_SUFFIXES)) | st.integers(-60, 60).map("e{}".format),
)
def test_parse_equals_a_model_of_fractions(sign, whole, part, suffix):
    text = f"{sign}{whole}{'' if part is None else '.' + part}{suffix}"
    if not text:
        return
    factor = Fraction(10) ** int(suffix[1:]) if suffix[:1] == "e" else _SUFFIXES[suffix]
    number = Fraction(int(whole + (part or "") or "0"), 10 ** len(part or "")) * factor
    expected = min(math.ceil(number * NANO), (2**63 - 1) * NANO)
    assert (-expected if sign == "-" else expected) == parse(text)


@given(st.integers(-MAX_NANOS, MAX_NANOS), st.booleans())
def test_formatting_loses_nothing(nanos, binary):
    assert nanos == parse(format_quantity(nanos, binary))


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_quantity_error(text):
    with contextlib.suppress(QuantityError):
        assert isinstance(parse(text), int)


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 4000, "4"),
        ("cpu", 0, "0"),
        ("memory", 3 << 29, "1.5Gi"),
        ("memory", 1000, "1000"),
        ("ephemeral-storage", 5 << 40, "5Ti"),
        ("hugepages-2Mi", 2 << 20, "2Mi"),
        ("memory", -(1 << 30), "-1Gi"),
        ("example.com/gpu", 1200, "1200"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_in_the_notation_of_kubernetes(resource, amount, expected):
    assert format_amount(resource, amount) == expected
