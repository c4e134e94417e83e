"""The distribution function of the beta distribution: of many distributions at once, and of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from moorage.framework.nodes import FloatArray

T = TypeVar("T", float, FloatArray)

_STEPS = 300
_SMALL = 1e-300
_NEAR = 1e-12
_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def distributions(x: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """The probability that a variable is at most `x`, 0 to 1; `alpha` and `beta` are above 0."""
    turned = x > (alpha + 1) / (alpha + beta + 2)  # the fraction converges fast on one side of the mean
    a, b, z = np.where(turned, beta, alpha), np.where(turned, alpha, beta), np.where(turned, 1 - x, x)
    inside = z > 0
    z = np.where(inside, z, 0.5)
    logs = (_log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)).astype(np.float64)
    share = np.exp(logs + a * np.log(z) + b * np.log1p(-z)) / a
    share = np.where(inside, share * _fraction(z, a, b, _nonzeros, _are_near_one), 0.0)
    found: FloatArray = np.where(turned, 1 - share, share).clip(0, 1)
    return found


def distribution(x: float, alpha: float, beta: float) -> float:
    """`distributions` for one: many times faster than an array of one entry."""
    turned = x > (alpha + 1) / (alpha + beta + 2)
    a, b, z = (beta, alpha, 1 - x) if turned else (alpha, beta, x)
    share = 0.0
    if z > 0:
        logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        share = math.exp(logs + a * math.log(z) + b * math.log1p(-z)) / a
        share *= _fraction(z, a, b, _nonzero, _is_near_one)
    return min(max(1 - share if turned else share, 0.0), 1.0)


def _fraction(x: T, a: T, b: T, nonzero: Callable[[T], T], is_near_one: Callable[[T], bool]) -> T:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = x * 0 + 1, 1 / nonzero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / nonzero(1 + even * d), nonzero(1 + even / c)
        result = result * (c * d)
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / nonzero(1 + odd * d), nonzero(1 + odd / c)
        step = c * d
        result = result * step
        if is_near_one(step):
            break
    return result


def _nonzeros(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) < _SMALL, _SMALL, values)


def _nonzero(value: float) -> float:
    return value if abs(value) >= _SMALL else _SMALL


def _are_near_one(values: FloatArray) -> bool:
    return bool(np.abs(values - 1).max(initial=0.0) < _NEAR)


def _is_near_one(value: float) -> bool:
    return abs(value - 1) < _NEAR
