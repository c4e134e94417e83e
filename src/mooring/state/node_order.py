"""The order in which nodes are listed: one of each zone in turn.

Under sampling this order decides which nodes are looked at, so it has to spread over zones and to be the same
as upstream's. Only keys are kept here; what they stand for is the caller's business.
"""

from __future__ import annotations

from itertools import chain, zip_longest

from mooring.api.node import Node

Zone = tuple[str, str]
"""Region and zone; two empty strings where a node has neither label."""

_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_NOTHING = -1


def zone_of(node: Node) -> Zone:
    """The zone of a node; the old label names win, as upstream."""
    return _first_label(node, _REGION), _first_label(node, _ZONE)


def _first_label(node: Node, keys: tuple[str, ...]) -> str:
    labels = node.metadata.labels
    return next((labels[key] for key in keys if key in labels), "")


class NodeOrder:
    """Rows by zone. Zones are in the order in which they were first seen, rows in the order in which they
    came.

    A zone goes with its last row. Listing is always a permutation of the rows that were put and not removed.
    """

    __slots__ = ("_zone_of", "_zones")

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[int, None]] = {}
        """No zone is empty."""
        self._zone_of: dict[int, Zone] = {}

    def __len__(self) -> int:
        return len(self._zone_of)

    def put(self, row: int, zone: Zone) -> bool:
        """Add the row, or move it to the end of another zone. False when it is there already."""
        if self._zone_of.get(row) == zone:
            return False
        self.remove(row)
        self._zone_of[row] = zone
        self._zones.setdefault(zone, {})[row] = None
        return True

    def remove(self, row: int) -> bool:
        """False when the row is unknown."""
        zone = self._zone_of.pop(row, None)
        if zone is None:
            return False
        members = self._zones[zone]
        del members[row]
        if not members:
            del self._zones[zone]
        return True

    def rows(self) -> list[int]:
        """All rows: the first of each zone, then the second of each that has one, and so on."""
        turns = zip_longest(*self._zones.values(), fillvalue=_NOTHING)
        return [row for row in chain.from_iterable(turns) if row != _NOTHING]
