"""Signatures: what of a pod the plugins read, as keys of memories.

A signature is made when a pod enters the queue and looked up in every cycle. Its parts are long tuples that
Python would hash and compare anew for each look, so equal ones are made the same object: they are told apart
by what they are, not by what they hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

_INTERNED = 8192
"""Values remembered, the latest ones. A value that comes back after that gets another object: what is
remembered under the old one is found no more, and nothing else happens."""


class Key:
    """Stands for a value; the same object for equal values."""

    __slots__ = ("value",)

    def __init__(self, value: Hashable) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class Signature(Key):
    """What all deciding plugins of a profile read of a pod."""

    __slots__ = ("about_nodes",)

    def __init__(self, value: Hashable, about_nodes: Key | None) -> None:
        super().__init__(value)
        self.about_nodes = about_nodes
        """The part of the plugins whose signs repeat (`Plugin.signs_repeat`): the same for pods that differ
        in labels and requests only. None where one of them does not sign the pod."""


class Signatures:
    """Makes signatures for one profile."""

    def __init__(self, most: int = _INTERNED) -> None:
        self._most = most
        self._signatures: OrderedDict[Hashable, Signature] = OrderedDict()
        self._keys: OrderedDict[Hashable, Key] = OrderedDict()

    def signature(self, value: Hashable, about_nodes: Hashable | None) -> Signature:
        """The signature of pods whose signs are `value`; `about_nodes` is the part that repeats."""
        found = self._signatures.get(value)
        if found is None:
            key = None if about_nodes is None else self._key(about_nodes)
            found = self._signatures[value] = Signature(value, key)
            if len(self._signatures) > self._most:
                self._signatures.popitem(last=False)
        else:
            self._signatures.move_to_end(value)
        return found

    def _key(self, value: Hashable) -> Key:
        found = self._keys.get(value)
        if found is None:
            found = self._keys[value] = Key(value)
            if len(self._keys) > self._most:
                self._keys.popitem(last=False)
        else:
            self._keys.move_to_end(value)
        return found
