"""The range of amounts in columns, and why no sum over them can wrap around.

A quantity may be as large as 2^63-1, so a node with two absurd pods would overflow an int64 sum and look
empty. Sums per node are therefore kept as exact Python integers; only what is written into a column is
clamped to ±(2^62-1). Adding or subtracting two such numbers stays within int64, so kernels need no guard of
their own for `requested + request` or `allocatable - requested`. A clamped amount is still larger than any
honest one, so comparisons come out as with exact numbers.
"""

from __future__ import annotations

LIMIT = 2**62 - 1
"""The largest magnitude that a column holds."""


def clamp(amount: int) -> int:
    """The amount as a column may hold it."""
    if -LIMIT <= amount <= LIMIT:
        return amount
    return LIMIT if amount > 0 else -LIMIT
