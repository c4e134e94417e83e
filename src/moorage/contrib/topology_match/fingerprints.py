"""Fingerprints of the pods of a node, as the podfingerprint package of scheduler-plugins makes them. Who
publishes a NodeResourceTopology adds that of the pods whose resources are counted in it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from moorage.api.pod import Pod
from moorage.api.resources import Unstructured
from moorage.contrib.topology_match.args import AUTODETECT, ONLY_EXCLUSIVE
from moorage.contrib.topology_match.topology import Topology

ATTRIBUTE = "nodeTopologyPodsFingerprint"
METHOD = "nodeTopologyPodsFingerprintMethod"
WITH_EXCLUSIVE_RESOURCES = "with-exclusive-resources"
ANNOTATION = "topology.node.k8s.io/fingerprint"
"""Where it was before there were attributes."""
PREFIX = "pfp0v001"

_MASK = 2**64 - 1
_P1, _P2, _P3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
_P4, _P5 = 9650029242287828579, 2870177450012600261


def fingerprint(pods: Iterable[Pod | Unstructured]) -> str:
    """Of a set of pods, whatever their order."""
    hashes = sorted(_pod_hash(pod.namespace, pod.name) for pod in pods)
    return f"{PREFIX}{xxhash64(b''.join(struct.pack('<Q', each) for each in hashes)):016x}"


def published_fingerprint(topology: Topology, method: str) -> tuple[str, bool]:
    """The fingerprint in an object, and whether only pods with exclusive resources are in it. Empty where
    there is none."""
    if text := topology.attributes.get(ATTRIBUTE, ""):
        detected = method == AUTODETECT and topology.attributes.get(METHOD) == WITH_EXCLUSIVE_RESOURCES
        return text, method == ONLY_EXCLUSIVE or detected
    return topology.annotations.get(ANNOTATION, ""), False


@lru_cache(maxsize=65536)
def _pod_hash(namespace: str, name: str) -> int:
    return xxhash64(name.encode(), xxhash64(namespace.encode()))


def xxhash64(data: bytes, seed: int = 0) -> int:
    """XXH64; too short a text for a dependency."""
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
