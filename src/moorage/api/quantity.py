"""Kubernetes quantities as exact integers of nano-units (10^-9 of the base unit).

Accepted is what apimachinery's ParseQuantity accepts: an optional sign, ASCII digits with at most one dot,
and one suffix: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a decimal exponent such as e3 or E-2. As upstream,
a text without digits ("M", ".") reads as zero, and values finer than one nano-unit round away from zero.

Magnitudes are capped at 2^63-1 base units, the documented limit of a quantity. Upstream applies the cap to
binary suffixes and lets the other forms overflow int64 when they are read; here all forms are capped.
What a quantity means for a resource (cpu in milli-units) is decided in `requests`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from moorage.api.errors import QuantityError

Quantity: TypeAlias = str | int | float
"""A quantity as it arrives: JSON allows numbers as well as strings."""

ResourceList: TypeAlias = Mapping[str, Quantity]
"""Resource names with quantities, as in requests, limits, capacity and allocatable."""

MILLI, BYTES = "m", "B"
"""Units of amounts: thousandths, as for cpu; bytes. The empty unit counts pieces."""

NANO = 1_000_000_000
MAX_NANOS = (2**63 - 1) * NANO

_LONGEST = 1000  # characters; keeps hostile texts cheap, far beyond any honest quantity
_EXPONENT_LIMIT = (
    2 * _LONGEST
)  # beyond this a value of at most _LONGEST digits is capped or rounds to 1n anyway
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<unit>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_UNITS = [*_POWERS_OF_TEN.items(), ("", 0)]


@lru_cache(maxsize=65536)
def parse(quantity: Quantity) -> int:
    """The quantity in nano-units; QuantityError when it is none."""
    text = _text(quantity)
    match = _GRAMMAR.fullmatch(text) if 0 < len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(quantity)
    sign, whole, part, unit, exponent = match.group("sign", "whole", "part", "unit", "exponent")
    part = part or ""
    power = _exponent(quantity, exponent) if exponent else _POWERS_OF_TEN.get(unit, 0)
    digits = int((whole + part) or "0") << _POWERS_OF_TWO.get(unit, 0)
    nanos = min(_scale_up(digits, power - len(part) + 9), MAX_NANOS)
    return -nanos if sign == "-" else nanos


def milli_value(quantity: Quantity) -> int:
    """The quantity in thousandths, rounded up as upstream's MilliValue."""
    return round_up(parse(quantity), 1_000_000)


def value(quantity: Quantity) -> int:
    """The quantity in base units, rounded up as upstream's Value."""
    return round_up(parse(quantity), NANO)


def format_amount(resource: str, amount: int) -> str:
    """Return an amount of a resource, counted as the framework counts it, in Kubernetes' notation."""
    return format_number(amount, unit_of(resource))


def unit_of(resource: str) -> str:
    """Return the unit in which amounts of a resource are counted."""
    if resource == "cpu":
        return MILLI
    return BYTES if resource.startswith(("memory", "ephemeral-storage", "hugepages-")) else ""


def format_number(number: int, unit: str = "") -> str:
    """Return a number of this unit in Kubernetes' notation: `200m`, `1.5Gi`, `3`."""
    if unit == MILLI:
        return f"{number // 1000}" if number % 1000 == 0 else f"{number}m"
    if unit == BYTES:
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            size = 1 << _POWERS_OF_TWO[suffix]
            if abs(number) >= size:
                return f"{number / size:.2f}".rstrip("0").rstrip(".") + suffix
    return str(number)


def _text(quantity: Quantity) -> str:
    if isinstance(quantity, str):
        return quantity
    try:
        return str(quantity)
    except ValueError as error:  # Python refuses to print integers of more than 4300 digits
        raise QuantityError("a number of thousands of digits") from error


def _exponent(quantity: Quantity, text: str) -> int:
    exponent = int(text)
    if not -(2**63) <= exponent < 2**63:
        raise QuantityError(quantity)
    return max(-_EXPONENT_LIMIT, min(_EXPONENT_LIMIT, exponent))


def _scale_up(digits: int, power: int) -> int:
    """digits * 10^power, rounded up."""
    factor: int = 10 ** abs(power)
    return digits * factor if power >= 0 else -(-digits // factor)


def round_up(nanos: int, unit: int) -> int:
    """nanos in units of `unit` nano-units, away from zero: asking for a little means asking for something."""
    return -(-nanos // unit) if nanos >= 0 else nanos // unit
