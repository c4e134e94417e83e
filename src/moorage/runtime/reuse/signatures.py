"""Decide which pods are alike, and how long an answer about one of them is valid.

A signature is everything that all deciding plugins of a profile read of a pod. It is made when a pod enters the queue
and looked up in every cycle. Its parts are long tuples that Python would hash and compare on each lookup, so equal ones
are interned and compared by identity.

A fingerprint is the state of everything besides pod and nodes that kept answers depend on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from weakref import WeakValueDictionary

from moorage.api.meta import key_of, labels_key
from moorage.api.pod import Pod, controller_of
from moorage.api.resources import Resource
from moorage.framework.access import Dependency, Kind, Reads, Version
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import Plugin
from moorage.runtime.profile import Profile

VersionOf = Callable[[Resource], int]
"""Kind → a number that grows with every change of one of its objects."""


class Key:
    """Stands for a value; equal values have the same object."""

    __slots__ = ("__weakref__", "value", "was_asked")

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self.was_asked = False
        """Whether a baseline was made for it before: most values that tenants invent occur once, and nothing is kept
        for them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class Signature(Key):
    """Everything that all deciding plugins of a profile read of a pod."""

    __slots__ = ("about_nodes", "waiting")

    def __init__(self, value: Hashable, about_nodes: Key | None) -> None:
        super().__init__(value)
        self.waiting = 0
        """How many pods were signed so and not tried yet, roughly: one that changes is signed again, one that
        goes away is never tried. It decides what is worth keeping, nothing else."""
        self.about_nodes = about_nodes
        """The part of the plugins with few signs (`ReusablePlugin.few_signs`): equal for pods that differ in
        labels and requests only. None where one of them does not sign the pod."""


class Signatures:
    """Makes signatures for one profile. A signature goes when its last pod and baseline have gone: a value that comes
    back after that gets another object, for which nothing is kept yet."""

    def __init__(self) -> None:
        self._signatures: WeakValueDictionary[Hashable, Signature] = WeakValueDictionary()
        self._keys: WeakValueDictionary[Hashable, Key] = WeakValueDictionary()

    def __len__(self) -> int:
        """Return the number of signatures in use."""
        return len(self._signatures)

    def signature(self, value: Hashable, about_nodes: Hashable | None) -> Signature:
        """Return the signature of pods whose signs are `value`; `about_nodes` is the part with few values."""
        found = self._signatures.get(value)
        if found is None:
            found = self._signatures[value] = Signature(value, self._key(about_nodes))
        return found

    def _key(self, value: Hashable | None) -> Key | None:
        if value is None:
            return None
        found = self._keys.get(value)
        if found is None:
            found = self._keys[value] = Key(value)
        return found


class Signer:
    """Makes the signatures of the pods of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile.name
        self._plugins = tuple(p for p in profile.deciding if isinstance(p, ReusablePlugin))
        self._all_sign = len(self._plugins) == len(profile.deciding)
        self._about_nodes = tuple(i for i, plugin in enumerate(self._plugins) if shares_node_set(plugin))
        self._signatures = Signatures()

    def signature(self, pod: Pod) -> Signature:
        """Combine all plugins' `sign`, with the pod's template for plugins that have none."""
        signs = tuple([plugin.sign(pod) for plugin in self._plugins])
        template = () if self._all_sign and None not in signs else template_of(pod)
        about_nodes = tuple([signs[index] for index in self._about_nodes])
        shared = None if None in about_nodes else (self._profile, about_nodes)
        found = self._signatures.signature((self._profile, signs, template), shared)
        found.waiting += 1
        return found


def shares_node_set(plugin: Plugin) -> bool:
    """Return whether all pods with an equal sign share the plugin's results about nodes (`node_set`)."""
    return isinstance(plugin, ReusablePlugin) and plugin.few_signs


def template_of(pod: Pod) -> Hashable:
    """Return what pods of one owner share: everything that a hint may read unless it asks for the pod itself."""
    owner = controller_of(pod)
    return (pod.namespace, owner.uid if owner else "", labels_key(pod.labels), key_of(pod.spec))


class Fingerprint:
    """The state of the kinds and versions that kept answers depend on."""

    __slots__ = ("_bumps", "_kinds", "_values", "_version_of", "_versions")

    def __init__(self, reads: Iterable[Dependency], version_of: VersionOf) -> None:
        found = list(dict.fromkeys(read for read in reads if isinstance(read, Kind | Version)))
        self._kinds = [read.resource for read in found if isinstance(read, Kind)]
        self._versions = [read for read in found if isinstance(read, Version)]
        self._version_of = version_of
        self._bumps = Version.bumps
        self._values = self._now()

    def _now(self) -> list[int]:
        return [version.value for version in self._versions] + [*map(self._version_of, self._kinds)]

    def holds(self) -> bool:
        """Return whether nothing has changed; called for every pod."""
        if self._bumps == Version.bumps and not self._kinds:
            return True
        if self._now() != self._values:
            return False
        self._bumps = Version.bumps
        return True


def known_reads(plugin: Plugin, pod: Pod) -> Collection[Dependency] | None:
    """Return what a plugin's answers about this pod depend on; None if they cannot be kept."""
    if not isinstance(plugin, ReusablePlugin) or plugin.sign(pod) is None:
        return None
    return plugin.reads(pod)


def is_about_node(read: Dependency) -> bool:
    """Return whether this changes with the nodes themselves, or is watched by a fingerprint. NODE_COUNT is included: no
    baseline outlives a change of the set of nodes."""
    return read is Reads.NODE or read is Reads.NODE_COUNT or isinstance(read, Kind | Version)


def is_about_row(read: Dependency) -> bool:
    """Return whether this changes with the node and its pods, or is watched by a fingerprint."""
    return read is Reads.ROW or is_about_node(read)
