"""Puts the objects of a snapshot into the store of the embedded cluster, with their UIDs and status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from moorage.api.errors import AlreadyExists, ApiError
from moorage.embedded.catalog.kinds import Catalog, Served
from moorage.store.store import Store


class SnapshotLoader:
    """Objects that exist stay as they are. What cannot be taken is left out, and named by `warnings`."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._loaded: Counter[str] = Counter()
        self._refused: dict[str, list[str]] = {}
        self._unknown: Counter[str] = Counter()

    async def load(self, objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The objects whose kind is not served are given back."""
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
        """Their kinds are not served."""
        self._unknown.update(f"{obj['kind']} ({obj['apiVersion']})" for obj in objects)

    def summary(self) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in self._loaded.items()) or "nothing new"

    def warnings(self) -> list[str]:
        lines = [
            f"{len(found)} {kind} were left out, such as {found[0]}" for kind, found in self._refused.items()
        ]
        if self._unknown:
            kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self._unknown.items()))
            lines.append(
                f"left out, because the cluster has no such kind: {kinds}; to have them, --apply a "
                "CustomResourceDefinition"
            )
        return lines

    def _served(self, obj: dict[str, Any]) -> Served | None:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        return self._catalog.of_kind(group, version, str(obj["kind"]))

    def _put(self, served: Served, obj: dict[str, Any]) -> None:
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
