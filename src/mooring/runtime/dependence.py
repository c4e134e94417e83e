"""What the answers of plugins depend on beside the pod: who can be remembered, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.framework.access import NODE, NODE_COUNT, ROW, Kind, Reads, Version
from mooring.framework.lifting import writes
from mooring.framework.points import Plugin

VersionOf = Callable[[Resource], int]


class Fingerprint:
    """The state of the kinds and versions that remembered answers depend on."""

    __slots__ = ("_bumps", "_kinds", "_values", "_version_of", "_versions")

    def __init__(self, reads: Iterable[Reads], version_of: VersionOf) -> None:
        found = list(dict.fromkeys(read for read in reads if isinstance(read, Kind | Version)))
        self._kinds = [read.resource for read in found if isinstance(read, Kind)]
        self._versions = [read for read in found if isinstance(read, Version)]
        self._version_of = version_of
        self._bumps = Version.bumps
        self._values = self._now()

    def _now(self) -> list[int]:
        return [version.value for version in self._versions] + [*map(self._version_of, self._kinds)]

    def holds(self) -> bool:
        """Whether nothing of it has changed; asked for every pod."""
        if self._bumps == Version.bumps and not self._kinds:
            return True
        if self._now() != self._values:
            return False
        self._bumps = Version.bumps
        return True


def known_reads(plugin: Plugin, pod: Pod) -> Collection[Reads] | None:
    """What a plugin says that its answers about this pod depend on; None where it cannot be remembered."""
    # Without a `sign` of its own nobody knows what the plugin reads of the pod.
    signs = writes(plugin, "sign") and plugin.sign(pod) is not None
    return plugin.reads(pod) if signs and writes(plugin, "reads") else None


def is_about_node(read: Reads) -> bool:
    """Whether this changes with the nodes themselves, or is watched by a fingerprint. NODE_COUNT is among
    these: memory does not outlive a change of the set of nodes."""
    return read is NODE or read is NODE_COUNT or isinstance(read, Kind | Version)


def is_about_row(read: Reads) -> bool:
    """The same with the pods that run on the node."""
    return read is ROW or is_about_node(read)
