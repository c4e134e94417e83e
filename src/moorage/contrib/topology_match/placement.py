"""Which zone a container runs in, as the numaplacement package of scheduler-plugins writes it into the
attributes of a NodeResourceTopology: containers are sorted by the hash of their name, and each zone but the
busiest one lists the places of its own in that order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from moorage.api.pod import Container, Pod
from moorage.contrib.qos_sort import GUARANTEED, qos_class
from moorage.contrib.topology_match.demands import exclusive_amounts
from moorage.contrib.topology_match.fingerprints import xxhash64
from moorage.contrib.topology_match.topology import Amounts, Topology, Zone

METADATA = "topology.node.k8s.io/numaplacement-metadata"
VECTOR = "topology.node.k8s.io/numaplacement-vector"
PREFIX = "npv0v001::ve=leb89::"
_ALPHABET = {chr(code): 0 for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\'}
_DIGITS = {letter: number for number, letter in enumerate(_ALPHABET)}
_LAST = 64
"""Digits below end a number, to the base of 64; the others go on, to the base of 25."""
_MORE = len(_DIGITS) - _LAST

Placement = Mapping[tuple[str, str, str], int]
"""Namespace, pod and container → zone."""


def placement(topology: Topology, pods: Iterable[Pod]) -> Placement:
    """Nothing where the object does not say so, or speaks of other containers than those of these pods."""
    metadata = topology.attributes.get(METADATA, "")
    fields = dict(pair.partition("=")[::2] for pair in metadata.removeprefix(PREFIX).split("::"))
    hashed = {
        xxhash64("\0".join(key := (pod.namespace, pod.name, container.name)).encode()): key
        for pod in pods
        for container, _ in pinned(pod, topology.resources)
    }
    busiest = fields.get("bn", "")
    if not metadata.startswith(PREFIX) or fields.get("cc") != str(len(hashed)) or not busiest.isdigit():
        return {}
    containers = [hashed[key] for key in sorted(hashed)]
    found = dict.fromkeys(containers, int(busiest))
    for zone in topology.zones:
        for place in offsets(zone.attributes.get(VECTOR, "")):
            if place >= len(containers):
                return {}
            found[containers[place]] = zone.id
    return found


def release(topology: Topology, victims: Iterable[Pod], where: Placement) -> Topology:
    """The zones without what these pods have to themselves, as far as it is known where that is."""
    more: dict[int, dict[str, int]] = {}
    for pod in victims:
        for container, amounts in pinned(pod, topology.resources):
            freed = more.setdefault(where.get((pod.namespace, pod.name, container.name), -1), {})
            for name, amount in amounts.items():
                freed[name] = freed.get(name, 0) + amount
    zones = (zone._replace(available=_sums(zone, more.get(zone.id, {}))) for zone in topology.zones)
    return topology._replace(zones=tuple(zones))


def _sums(zone: Zone, freed: Amounts) -> Amounts:
    """No zone can have more than it had at first."""
    return {
        name: min(amount + freed.get(name, 0), max(zone.allocatable.get(name, 0), amount))
        for name, amount in zone.available.items()
    }


def pinned(pod: Pod, reported: set[str]) -> Iterator[tuple[Container, Amounts]]:
    """The containers of a pod that have something to themselves."""
    guaranteed = qos_class(pod) == GUARANTEED
    sidecars = (each for each in pod.spec.init_containers if each.is_sidecar)
    for container in (*sidecars, *pod.spec.containers):
        if amounts := exclusive_amounts(container, guaranteed, reported):
            yield container, amounts


def offsets(text: str) -> list[int]:
    """Rising numbers, written as differences."""
    found, total, higher, digits = [], 0, 0, 0
    for letter in text:
        digit = _DIGITS.get(letter, 0)
        if digit >= _LAST:
            higher, digits = higher * _MORE + digit - _LAST, digits + 1
            continue
        total += _LAST + higher * _LAST + digit if digits else digit
        found.append(total)
        higher = digits = 0
    return found
