"""Loads objects into the embedded cluster: manifests as kubectl applies them, and snapshots with UIDs and status."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.api.errors import AlreadyExists, ApiError, MoorageError
from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.catalog.kinds import Catalog, ServedKind
from moorage.embedded.http import ADMIN, ApiRequest, ServerAnswer
from moorage.framework.ports import Clock, PatchType
from moorage.store.store import Store

_PATIENCE = 2.0
"""Seconds that a kind may take to be served after its CustomResourceDefinition."""


class SnapshotLoader:
    """Loads a snapshot. Existing objects stay as they are. `warnings` names objects that cannot be loaded."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._loaded: Counter[str] = Counter()
        self._refused: dict[str, list[str]] = {}
        self._unknown: Counter[str] = Counter()

    async def load(self, objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Load objects. Returns those whose kind is not served."""
        unserved = []
        for obj in objects:
            served = self._served(obj)
            if served is None:
                unserved.append(obj)
            else:
                self._put(served, obj)
        await self._store.settled()
        return unserved

    def give_up(self, objects: Sequence[dict[str, Any]]) -> None:
        """Report objects whose kinds are not served."""
        self._unknown.update(f"{obj['kind']} ({obj['apiVersion']})" for obj in objects)

    def summary(self) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in self._loaded.items()) or "nothing new"

    def warnings(self) -> list[str]:
        lines = [
            f"{len(found)} {kind} were not loaded, for example {found[0]}" for kind, found in self._refused.items()
        ]
        if self._unknown:
            kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self._unknown.items()))
            lines.append(
                f"not loaded, because the cluster does not serve this kind: {kinds}; to load them, --apply a "
                "CustomResourceDefinition"
            )
        return lines

    def _served(self, obj: dict[str, Any]) -> ServedKind | None:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        return self._catalog.of_kind(group, version, str(obj["kind"]))

    def _put(self, served: ServedKind, obj: dict[str, Any]) -> None:
        plural = served.resource.plural
        try:
            raw = obj if served.admission is None else served.admission.admit(obj, None)
            self._store.load(served.stored, raw)
        except AlreadyExists:
            return
        except ApiError as error:
            meta = obj["metadata"]
            name = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
            self._refused.setdefault(plural, []).append(f"{name}: {error}")
            return
        self._loaded[plural] += 1


class Applier:
    """Applies manifests in the process, as kubectl does: objects are created, or patched to match the file.
    They pass the same checks as the objects of any client."""

    def __init__(self, app: ApiServer, catalog: Catalog, clock: Clock) -> None:
        self._app = app
        self._catalog = catalog
        self._clock = clock

    async def apply(self, objects: Sequence[dict[str, Any]], source: str) -> list[str]:
        """Return one line for each object. A MoorageError names the first object that is refused, and why."""
        return [await self._apply_one(obj, source) for obj in objects]

    async def _apply_one(self, obj: dict[str, Any], source: str) -> str:
        served = await self._served(obj, source)
        meta = obj["metadata"]
        path = _path(served, str(meta.get("namespace") or "default"))
        label = f"{_label(served)}/{meta.get('name') or meta['generateName']}"
        content = msgspec.json.encode(obj)
        answer = await self._send("POST", path, content, "application/json")
        if answer.status == 201:
            return f"{label} created"
        if answer.status == 409:
            custom = served.admission is not None
            patch_type = PatchType.MERGE if custom else PatchType.STRATEGIC
            answer = await self._send("PATCH", f"{path}/{meta['name']}", content, patch_type)
            if answer.status == 200:
                return f"{label} configured"
        message = msgspec.json.decode(answer.body).get("message", f"status {answer.status}")
        raise MoorageError(f"{source}: {label} was refused: {message}")

    async def _served(self, obj: dict[str, Any], source: str) -> ServedKind:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        deadline = self._clock.now() + _PATIENCE
        while (served := self._catalog.of_kind(group, version, str(obj["kind"]))) is None:
            if self._clock.now() > deadline:
                raise MoorageError(
                    f"{source}: the cluster has no kind {obj['kind']} in {obj['apiVersion']}; put its "
                    "CustomResourceDefinition first, or correct apiVersion and kind"
                )
            await asyncio.sleep(0.01)
        return served

    async def _send(self, method: str, path: str, body: bytes, content_type: str) -> ServerAnswer:
        headers = {"content-type": content_type}
        return await self._app.answer(ApiRequest(method, path, headers=headers, body=body, user=ADMIN))


def _path(served: ServedKind, namespace: str) -> str:
    resource = served.resource
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{inside}/{resource.plural}"


def _label(served: ServedKind) -> str:
    """Name a kind as kubectl does: `deployment.apps`, or `service` in the core group."""
    group = served.resource.group
    return f"{served.singular}.{group}" if group else served.singular
