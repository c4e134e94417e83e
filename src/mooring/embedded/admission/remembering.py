"""Pods of one template have one spec: what was filled in, or found good, for the first holds for all.

Keyed by the JSON text, so nothing has to be compared field by field. Sharing the filled-in spec among pods
also saves the memory of a copy for each; specs that are stored are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mooring.embedded.admission.problems import Problems
from mooring.store.objects import Raw

_LIMIT = 2048
_LONGEST = 32 * 1024  # bytes; a larger spec is worked on each time


def remember_result(work: Callable[[Raw], Raw]) -> Callable[[Raw], Raw]:
    """A function of a spec that is not computed again for an equal one."""
    known: dict[bytes, Raw] = {}

    def remembered(spec: Raw) -> Raw:
        key = msgspec.json.encode(spec)
        result = known.get(key)
        if result is None:
            result = work(spec)
            if len(key) <= _LONGEST:
                _make_room(known)
                known[key] = result
        return result

    return remembered


def remember_good(check: Callable[[Raw, str, Problems], None]) -> Callable[[Raw, str, Problems], None]:
    """A check of a spec that is not done again for an equal one that had no problem."""
    good: dict[bytes, None] = {}

    def remembered(spec: Raw, path: str, problems: Problems) -> None:
        key = msgspec.json.encode(spec)
        if key in good:
            return
        before = len(problems.causes)
        check(spec, path, problems)
        if len(problems.causes) == before and len(key) <= _LONGEST:
            _make_room(good)
            good[key] = None

    return remembered


def _make_room(known: dict[bytes, Raw] | dict[bytes, None]) -> None:
    if len(known) >= _LIMIT:
        known.clear()
