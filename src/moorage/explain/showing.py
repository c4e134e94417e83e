"""Amounts and details as people read them."""

from __future__ import annotations

from moorage.framework.optional import BYTES, MILLI, Detail, Figure, unit_of

_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount(resource: str, number: int) -> str:
    """An amount of a resource in Kubernetes' notation: `200m`, `1.5Gi`, `3`."""
    return figure(number, unit_of(resource))


def figure(number: Figure, unit: str = "") -> str:
    """A number with its unit; a text as it is."""
    if not isinstance(number, int):
        return "" if number is None else number
    if unit == MILLI:
        return f"{number // 1000}" if number % 1000 == 0 else f"{number}m"
    if unit == BYTES:
        for name, size in _BINARY:
            if abs(number) >= size:
                return f"{number / size:.2f}".rstrip("0").rstrip(".") + name
    return str(number)


def detail_text(detail: Detail) -> str:
    """One detail on one node: `cpu: asks 2, 500m free, 1500m short`."""
    asked, there = figure(detail.asked, detail.unit), figure(detail.there, detail.unit)
    parts = [f"asks {asked}"] if asked else []
    parts += [f"there {there}"] if there else []
    parts += [f"{figure(detail.missing, detail.unit)} short"] if detail.missing is not None else []
    parts += [f"pods {', '.join(detail.pods)}"] if detail.pods else []
    return f"{detail.subject}: {', '.join(parts)}" if parts else detail.subject
