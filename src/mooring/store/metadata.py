"""The metadata of new objects: name, UID, creation time."""

from __future__ import annotations

import random
from collections.abc import Callable

from mooring.store import refusals
from mooring.store.objects import Raw, key_in, timestamp
from mooring.store.table import Table

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as upstream: no vowels, so no words
_NAME_ATTEMPTS = 8
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_NEVER_KEPT = ("managedFields", "selfLink")
"""What clients may send along from elsewhere; there is no server-side apply here."""


class Namer:
    """Gives names, UIDs and times; remembers the UIDs that came from outside."""

    def __init__(self, wall: Callable[[], float], rng: random.Random) -> None:
        self._wall = wall
        self._rng = rng
        self._seen: set[str] = set()
        self._last_made = ""

    def metadata(self, table: Table, given: Raw, *, keep_times: bool) -> Raw:
        """The metadata to store for a new object. `keep_times` is for objects that lived elsewhere before."""
        unwanted = _NEVER_KEPT if keep_times else (*_NEVER_KEPT, *_DELETION)
        meta = {field: value for field, value in given.items() if field not in unwanted}
        if meta.pop("resourceVersion", None) and not keep_times:
            raise refusals.bad_request("resourceVersion should not be set on objects to be created")
        self._place(table, meta)
        if not keep_times or not meta.get("creationTimestamp"):
            meta["creationTimestamp"] = timestamp(self._wall())
        if not meta.get("uid") or meta["uid"] in self._seen:
            meta["uid"] = self._last_made = self._new_uid()
        meta["generation"] = 1
        return meta

    def keep(self, uid: str) -> None:
        """Remembers the UID of an object that is now stored. Those made here cannot come again anyway."""
        if uid != self._last_made:
            self._seen.add(uid)

    def _place(self, table: Table, meta: Raw) -> None:
        """Settles namespace and name. Without either name the rules refuse the object."""
        if not table.resource.namespaced:
            meta.pop("namespace", None)
        elif not meta.get("namespace"):
            raise refusals.bad_request("an empty namespace may not be set during creation")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generate_name(table, meta)

    def _generate_name(self, table: Table, meta: Raw) -> str:
        prefix = meta["generateName"]
        for _ in range(_NAME_ATTEMPTS):
            name = f"{prefix}{''.join(self._rng.choice(_SUFFIX_LETTERS) for _ in range(5))}"
            if key_in(table.resource, meta.get("namespace", ""), name) not in table.objects:
                break
        return name

    def _new_uid(self) -> str:
        """In the form of a random (version 4) UUID."""
        digits = f"{self._rng.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) % 4]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
