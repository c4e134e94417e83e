"""Read what a publisher writes into the attributes of a NodeResourceTopology.

Fingerprints of the pods of a node follow the podfingerprint package of scheduler-plugins: a publisher adds the
fingerprint of the pods whose resources the object includes. The zones of containers follow the numaplacement package:
containers are sorted by the hash of their name, and each zone but the busiest one lists the positions of its containers
in that order."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from moorage.api.pod import Container, Pod
from moorage.api.resources import Unstructured
from moorage.contrib.qos_sort import GUARANTEED, qos_class
from moorage.contrib.topology_match.args import AUTODETECT, ONLY_EXCLUSIVE
from moorage.contrib.topology_match.demands import exclusive_amounts
from moorage.contrib.topology_match.topology import Amounts, Zone, ZoneTopology

ATTRIBUTE = "nodeTopologyPodsFingerprint"
METHOD = "nodeTopologyPodsFingerprintMethod"
WITH_EXCLUSIVE_RESOURCES = "with-exclusive-resources"
ANNOTATION = "topology.node.k8s.io/fingerprint"
"""Where it was before there were attributes."""
FINGERPRINT_PREFIX = "pfp0v001"

_MASK = 2**64 - 1
_P1, _P2, _P3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
_P4, _P5 = 9650029242287828579, 2870177450012600261


def fingerprint(pods: Iterable[Pod | Unstructured]) -> str:
    """Return the fingerprint of a set of pods, independent of their order."""
    hashes = sorted(_pod_hash(pod.namespace, pod.name) for pod in pods)
    return f"{FINGERPRINT_PREFIX}{xxhash64(b''.join(struct.pack('<Q', each) for each in hashes)):016x}"


def published_fingerprint(topology: ZoneTopology, method: str) -> tuple[str, bool]:
    """Return the fingerprint of an object, and whether it covers only pods with exclusive resources. Empty if there is
    none."""
    if text := topology.attributes.get(ATTRIBUTE, ""):
        detected = method == AUTODETECT and topology.attributes.get(METHOD) == WITH_EXCLUSIVE_RESOURCES
        return text, method == ONLY_EXCLUSIVE or detected
    return topology.annotations.get(ANNOTATION, ""), False


@lru_cache(maxsize=65536)
def _pod_hash(namespace: str, name: str) -> int:
    return xxhash64(name.encode(), xxhash64(namespace.encode()))


def xxhash64(data: bytes, seed: int = 0) -> int:
    """Compute XXH64, which is too short to add a dependency for."""
    size, start = len(data), 0
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        for start in range(0, size - 31, 32):
            words = struct.unpack_from("<4Q", data, start)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        start += 32
        total = sum(_turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = (total ^ _round(0, lane)) * _P1 + _P4
    else:
        total = seed + _P5
    total = (total + size) & _MASK
    while start + 8 <= size:
        total = (_turn(total ^ _round(0, *struct.unpack_from("<Q", data, start)), 27) * _P1 + _P4) & _MASK
        start += 8
    if start + 4 <= size:
        (word,) = struct.unpack_from("<I", data, start)
        total = (_turn((total ^ word * _P1) & _MASK, 23) * _P2 + _P3) & _MASK
        start += 4
    for byte in data[start:]:
        total = _turn((total ^ byte * _P5) & _MASK, 11) * _P1 & _MASK
    for shift, factor in ((33, _P2), (29, _P3), (32, 1)):
        total = (total ^ total >> shift) * factor & _MASK
    return total


def _round(lane: int, word: int) -> int:
    return _turn((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turn(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


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


def placement(topology: ZoneTopology, pods: Iterable[Pod]) -> Placement:
    """Return the zone of each container; empty if the object lacks this, or lists other containers than those of these
    pods."""
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


def release(topology: ZoneTopology, victims: Iterable[Pod], where: Placement) -> ZoneTopology:
    """Return the zones without the exclusive resources of these pods, where their zones are known."""
    more: dict[int, dict[str, int]] = {}
    for pod in victims:
        for container, amounts in pinned(pod, topology.resources):
            freed = more.setdefault(where.get((pod.namespace, pod.name, container.name), -1), {})
            for name, amount in amounts.items():
                freed[name] = freed.get(name, 0) + amount
    zones = (zone._replace(available=_sums(zone, more.get(zone.id, {}))) for zone in topology.zones)
    return topology._replace(zones=tuple(zones))


def _sums(zone: Zone, freed: Amounts) -> Amounts:
    """Add the amounts; no zone can have more than its capacity."""
    return {
        name: min(amount + freed.get(name, 0), max(zone.allocatable.get(name, 0), amount))
        for name, amount in zone.available.items()
    }


def pinned(pod: Pod, reported: set[str]) -> Iterator[tuple[Container, Amounts]]:
    """Return the containers of a pod that have exclusive resources."""
    guaranteed = qos_class(pod) == GUARANTEED
    sidecars = (each for each in pod.spec.init_containers if each.is_sidecar)
    for container in (*sidecars, *pod.spec.containers):
        if amounts := exclusive_amounts(container, guaranteed, reported):
            yield container, amounts


def offsets(text: str) -> list[int]:
    """Decode rising numbers that are written as differences."""
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
