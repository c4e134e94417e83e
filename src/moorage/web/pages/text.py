"""Ages, counts and addresses as the pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlencode


def age(seconds: float) -> str:
    """Format an age as kubectl does, in one or two units: `45s`, `3m20s`, `5h10m`, `12d`."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 600:
        return f"{whole // 60}m{whole % 60}s"
    if whole < 3600 * 3:
        return f"{whole // 60}m"
    if whole < 3600 * 24:
        return f"{whole // 3600}h{whole % 3600 // 60}m"
    return f"{whole // 86400}d"


def clock(epoch: float) -> str:
    """Format a time as a date and a time of day."""
    return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S} UTC"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def pod_url(key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"/pod/{quote(namespace, safe='')}/{quote(name, safe='')}"


def node_url(name: str) -> str:
    return f"/node/{quote(name, safe='')}"


def object_url(kind: str, namespace: str, name: str) -> str:
    """Return the address of an object; `-` stands for no namespace."""
    return f"/object/{quote(kind, safe='')}/{quote(namespace or '-', safe='')}/{quote(name, safe='')}"


def address(path: str, query: Mapping[str, str]) -> str:
    """Return a path with the non-empty parameters as its query."""
    rest = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{rest}" if rest else path
