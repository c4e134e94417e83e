"""Callbacks of plugins for changes of the kinds that they declared.

A change is noted when its store takes it over, and handed on when all that has arrived is applied: a callback
sees one state of the whole cluster."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from moorage.api.resources import Resource
from moorage.framework.handle import OnChange
from moorage.state.stores import Stores, Watcher
from moorage.telemetry import logs

_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class _Noted:
    plugin: str
    resource: Resource
    callback: OnChange
    old: Any | None
    new: Any | None


class ChangeCallbacks:
    """Who wants to know of which kind. Costs nothing for kinds without a callback."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._watchers: list[tuple[Resource, Watcher]] = []
        self.noted: deque[_Noted] = deque()
        """Changes that no callback has seen yet, in order."""

    def add(self, plugin: str, resource: Resource, callback: OnChange) -> None:
        """From now on; what is in the store already counts as having appeared."""

        def note(old: Any | None, new: Any | None) -> None:
            self.noted.append(_Noted(plugin, resource, callback, old, new))

        self._stores[resource].observe(note)
        self._watchers.append((resource, note))

    def close(self) -> None:
        """Call no callback any more."""
        for resource, watcher in self._watchers:
            self._stores[resource].ignore(watcher)
        self._watchers.clear()
        self.noted.clear()

    def call(self) -> None:
        """Hand on everything that was noted. A callback that breaks loses that one change."""
        while self.noted:
            change = self.noted.popleft()
            try:
                change.callback(change.old, change.new)
            except Exception as error:
                obj = change.new if change.new is not None else change.old
                _log.error(
                    "A callback for changes failed",
                    error=error,
                    stack=True,
                    plugin=change.plugin,
                    resource=change.resource,
                    object=getattr(obj, "key", "?"),
                )
