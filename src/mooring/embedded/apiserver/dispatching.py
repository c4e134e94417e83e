"""Which function handles which verb of which resource or subresource."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mooring.api.resources import PODS
from mooring.embedded.apiserver import evicting, pod_calls, reading, removing, scaling, writing
from mooring.embedded.apiserver.calls import Call, not_allowed
from mooring.embedded.apiserver.paths import Path
from mooring.embedded.apiserver.tokens import Signer
from mooring.embedded.catalog.kinds import Catalog, Served
from mooring.embedded.http import Answer
from mooring.store import refusals

Handler: TypeAlias = Callable[[Call], Answer]

_OBJECTS: dict[str, Handler] = {
    "get": reading.get,
    "list": reading.list_,
    "create": writing.create,
    "update": writing.replace,
    "patch": writing.patch,
    "delete": removing.delete,
    "deletecollection": removing.delete_collection,
}
_PART: dict[str, Handler] = {"get": reading.get, "update": writing.replace, "patch": writing.patch}
_SUBRESOURCES: dict[str, dict[str, Handler]] = {
    "status": _PART,
    "resize": _PART,
    "finalize": {"update": writing.replace},
    "scale": {"get": scaling.get, "update": scaling.replace, "patch": scaling.patch},
    "binding": {"create": pod_calls.bind},
    "eviction": {"create": evicting.evict},
    "log": {"get": pod_calls.log},
}
_OF_ONE_NAMESPACE = frozenset({"create", "deletecollection"})


class Dispatcher:
    """Finds the served kind and the handler of a request."""

    def __init__(self, catalog: Catalog, signer: Signer) -> None:
        self._catalog = catalog
        self._subresources: dict[str, dict[str, Handler]] = {
            **_SUBRESOURCES,
            "token": {"create": signer.create},
        }

    def served(self, path: Path) -> Served | None:
        """The kind that a path is about; None if it is not served, or not in this scope."""
        served = self._catalog.find(path.group, path.version, path.plural)
        if served is None:
            return self._bindings(path)
        if path.namespace and not served.resource.namespaced:
            return None
        if path.name and not path.namespace and served.resource.namespaced:
            return None
        return served

    def handler(self, served: Served, path: Path, verb: str) -> Handler:
        """What to call; 404 for an unknown subresource, 405 for a verb that is not served."""
        if path.subresource:
            return self._of_subresource(served, path.subresource, verb)
        if path.plural == "bindings" and verb == "create":
            return pod_calls.bind
        if verb not in served.verbs or verb not in _OBJECTS or path.plural == "bindings":
            raise not_allowed()
        if verb in _OF_ONE_NAMESPACE and served.resource.namespaced and not path.namespace:
            raise not_allowed()
        return _OBJECTS[verb]

    def _of_subresource(self, served: Served, name: str, verb: str) -> Handler:
        declared = served.subresource(name)
        handlers = self._subresources.get(name)
        if declared is None or handlers is None:
            raise refusals.no_subresource(served.resource, name)
        if verb not in declared.verbs or verb not in handlers:
            raise not_allowed()
        return handlers[verb]

    def _bindings(self, path: Path) -> Served | None:
        """The older way to bind: POST to a resource of its own, with the pod's name in the object."""
        if (path.group, path.version, path.plural) != ("", "v1", "bindings") or not path.namespace:
            return None
        return self._catalog.find(PODS.group, PODS.version, PODS.plural) if not path.name else None
