"""Addresses for nodes and pods, each from a range of its own; nothing is ever sent to them."""

from __future__ import annotations

from ipaddress import IPv4Network

NODES = "10.0.0.0/13"
PODS = "10.64.0.0/10"


class Addresses:
    """Hands out addresses of one range; those given back are used again last."""

    def __init__(self, network: str) -> None:
        self._first = int(IPv4Network(network).network_address)
        self._size = IPv4Network(network).num_addresses
        self._holders: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def of(self, holder: str) -> str:
        """The holder's address; a new one the first time."""
        found = self._holders.get(holder)
        if found is None:
            found = self._holders[holder] = self._find()
            self._taken.add(found)
        return found

    def keep(self, holder: str, address: str) -> None:
        """The holder has this address already."""
        if address not in self._taken:
            self._holders[holder] = address
            self._taken.add(address)

    def give_back(self, holder: str) -> None:
        self._taken.discard(self._holders.pop(holder, ""))

    def _find(self) -> str:
        for _ in range(self._size):
            number = self._next
            self._next = 1 + number % (self._size - 2)
            address = _dotted(self._first + number)
            if number % 256 and address not in self._taken:
                return address
        raise RuntimeError(f"all {self._size} addresses are taken")


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
