"""Kubernetes quantities as exact integers of nano-units (10^-9 of the base unit).

`parse` accepts the same texts as ParseQuantity in k8s.io/apimachinery/pkg/api/resource/quantity.go: an
optional sign, ASCII digits with at most one dot, and one suffix: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a
decimal exponent such as e3 or E-2. As upstream, a text without digits ("M", ".") is zero, and values finer
than one nano-unit are rounded away from zero.

Magnitudes are capped at 2^63-1 base units, the documented limit of a quantity. Upstream caps only binary
suffixes and lets other forms overflow int64 when they are read; here all forms are capped. `requests` decides
what a quantity means for a resource (cpu in milli-units).
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

from moorage.api.errors import QuantityError
from moorage.api.recent import cached

Quantity: TypeAlias = str | int | float
"""A quantity on the wire: JSON allows numbers as well as strings."""

ResourceList: TypeAlias = Mapping[str, Quantity]
"""Resource names with quantities, as in requests, limits, capacity and allocatable."""

MILLI, BYTES = "m", "B"
"""Units of amounts: thousandths, as for cpu; bytes. The empty unit counts pieces."""

NANO = 1_000_000_000
MAX_NANOS = (2**63 - 1) * NANO

_MAX_CACHED_CHARACTERS = 32  # longer texts are not kept
_MAX_CHARACTERS = 1000  # bounds the cost of hostile texts, far above any real quantity
# Beyond this exponent, a value of at most _MAX_CHARACTERS digits is capped or rounds to 1n anyway.
_EXPONENT_LIMIT = 2 * _MAX_CHARACTERS
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<unit>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_DECIMAL_UNITS = [*_POWERS_OF_TEN.items(), ("", 0)]


def parse(quantity: Quantity) -> int:
    """Return the quantity in nano-units. Raises QuantityError."""
    if isinstance(quantity, str) and len(quantity) > _MAX_CACHED_CHARACTERS:
        return _parse(quantity)
    return _cached(quantity)


def _parse(quantity: Quantity) -> int:
    text = _text(quantity)
    match = _GRAMMAR.fullmatch(text) if 0 < len(text) <= _MAX_CHARACTERS else None
    if match is None:
        raise QuantityError(quantity)
    sign, whole, part, unit, exponent = match.group("sign", "whole", "part", "unit", "exponent")
    part = part or ""
    power = _exponent(quantity, exponent) if exponent else _POWERS_OF_TEN.get(unit, 0)
    digits = int((whole + part) or "0") << _POWERS_OF_TWO.get(unit, 0)
    nanos = min(_scale_up(digits, power - len(part) + 9), MAX_NANOS)
    return -nanos if sign == "-" else nanos


_cached = cached(16384)(_parse)
"""The quantities that were parsed last."""


def milli_value(quantity: Quantity) -> int:
    """Return the quantity in thousandths, rounded up like upstream's MilliValue."""
    return round_up(parse(quantity), 1_000_000)


def value(quantity: Quantity) -> int:
    """Return the quantity in base units, rounded up like upstream's Value."""
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
    """Return digits * 10^power, rounded up."""
    factor: int = 10 ** abs(power)
    return digits * factor if power >= 0 else -(-digits // factor)


def round_up(nanos: int, unit: int) -> int:
    """Return `nanos` in units of `unit` nano-units, rounded away from zero so that no request becomes 0."""
    return -(-nanos // unit) if nanos >= 0 else nanos // unit


def format_nanos(nanos: int, *, binary: bool, exponent: bool = False) -> str:
    """Return nano-units in the shortest form without a fraction, with suffixes of one kind."""
    if not nanos:
        return "0"
    if binary and nanos % NANO == 0 and abs(nanos) >= 1024 * NANO:
        number, suffix = _divide(nanos // NANO, 1024, _BINARY)
        return f"{number}{suffix}"
    number, suffix = _divide(nanos, 1000, _DECIMAL)
    if exponent and suffix:
        return f"{number}e{3 * (_DECIMAL.index(suffix) - 3)}"
    return f"{number}{suffix}"


def _divide(number: int, base: int, suffixes: tuple[str, ...]) -> tuple[int, str]:
    power = 0
    while number % base == 0 and power < len(suffixes) - 1:
        number, power = number // base, power + 1
    return number, suffixes[power]
