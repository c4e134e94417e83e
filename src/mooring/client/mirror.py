"""The informer's copy of one resource, and the changes between two states of it. No I/O.

One rule for objects that cannot be read (a wrong type in a field, a quantity that is none): **a malformed
version is no version.** An object never seen in readable form is set aside; a known one keeps its last good
version until a readable one arrives or the object goes. Treating it as deleted would free the capacity of a
pod that still runs, and drain a node from view over a typo in an annotation; a pending pod bound on its last
good version is still protected by the UID precondition of the binding.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mooring.api import decoding
from mooring.api.errors import ObjectError
from mooring.api.resources import Resource
from mooring.framework.ports import DELETED, Change, Malformed, WatchEvent

Deliver = Callable[[Change], None]


class Mirror:
    """Key → object as last delivered. Identity on the wire is namespace/name; a changed UID is split here."""

    def __init__(
        self, resource: Resource, deliver: Deliver, on_malformed: Callable[[Malformed], None]
    ) -> None:
        self.resource = resource
        self.objects: dict[str, Any] = {}
        self.malformed: dict[str, str] = {}
        """Key → why the current version on the server cannot be used."""
        self._deliver = deliver
        self._on_malformed = on_malformed

    def check(self, obj: Any) -> Malformed | None:
        """Why an object of a list or watch cannot be used; None when it can."""
        if isinstance(obj, Malformed):
            return obj
        try:
            decoding.validate(obj)
        except ObjectError as error:
            return Malformed(obj.key, str(error))
        return None

    def apply(self, event: WatchEvent) -> None:
        """One ADDED, MODIFIED or DELETED; which of the first two does not matter, nor does a repetition."""
        obj = event.object
        if event.type == DELETED:
            self._delete(obj)
        elif problem := self.check(obj):
            self._set_aside(problem, obj)
        else:
            self._put(obj)

    def replace(self, items: Iterable[Any], initial: bool) -> Iterator[None]:
        """Takes over a complete listing, pausing after each object so that the caller can yield to the loop.

        What is missing was deleted unseen: it is delivered as a delete with the last known version.
        """
        present = set()
        for obj in items:
            present.add(obj.key)
            if problem := self.check(obj):
                self._set_aside(problem, obj)
            else:
                self._put(obj, initial)
            yield
        for key in [key for key in self.objects if key not in present]:
            self._remove(key)
            yield
        self.malformed = {key: error for key, error in self.malformed.items() if key in present}

    def _put(self, new: Any, initial: bool = False) -> None:
        key = new.key
        old = self.objects.get(key)
        self.malformed.pop(key, None)
        if old is not None and old.uid != new.uid:
            self._remove(key)
            old = None
        if old is None or not _same_version(old, new):
            self._deliver(Change(self.resource, old, new, initial))
        # Noted only once delivered: if that fails, the next listing repeats it.
        self.objects[key] = new

    def _delete(self, last: Any) -> None:
        """A DELETED event. It carries the final state, which is what is delivered if it can be read."""
        key = last.key
        known = self.objects.get(key)
        if known is None or key in self.malformed or self.check(last):
            self._remove(key)
        elif last.uid == known.uid:
            self._remove(key, last)
        # Otherwise it repeats the end of an earlier object of that name.

    def _remove(self, key: str, last: Any = None) -> None:
        self.malformed.pop(key, None)
        known = self.objects.get(key)
        if known is not None:
            self._deliver(Change(self.resource, last or known, None))
            del self.objects[key]

    def _set_aside(self, problem: Malformed, obj: Any = None) -> None:
        known = self.objects.get(problem.key)
        if known is not None and getattr(obj, "uid", known.uid) != known.uid:
            self._remove(problem.key)
        if self.malformed.get(problem.key) != problem.error:
            self._on_malformed(problem)
        self.malformed[problem.key] = problem.error


def _same_version(old: Any, new: Any) -> bool:
    """Versions of one UID are unique, so equal ones need no comparison of the objects."""
    return bool(new.resource_version) and old.resource_version == new.resource_version
