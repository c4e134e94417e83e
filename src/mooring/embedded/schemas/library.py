"""All types of the API, loaded from the files in `types/` when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import resources as package_files

from mooring.embedded.schemas import notation
from mooring.embedded.schemas.notation import Definition, Field, Plain, Ref

_STRING = Plain("string")
TYPE_FIELDS = {
    "apiVersion": Field(
        "apiVersion", _STRING, description="The group and version of this form of the object."
    ),
    "kind": Field("kind", _STRING, description="What the object is."),
}
"""The fields that kinds have besides their own."""


class Library:
    """Types by reference and by kind."""

    def __init__(self, definitions: Iterator[Definition]) -> None:
        self._by_ref: dict[tuple[str, str], Definition] = {}
        self._by_kind: dict[tuple[str, str], Definition] = {}
        for definition in definitions:
            self._by_ref[definition.package, definition.name] = definition
            if definition.api_version:
                self._by_kind[definition.api_version, definition.name] = definition

    def resolve(self, ref: Ref) -> Definition:
        return self._by_ref[ref.package, ref.name]

    def kind(self, api_version: str, kind: str) -> Definition | None:
        """The kind, or None for one that no file describes."""
        return self._by_kind.get((api_version, kind))

    def kinds(self) -> Iterator[Definition]:
        return iter(self._by_kind.values())

    def all(self) -> Iterator[Definition]:
        return iter(self._by_ref.values())


@lru_cache(maxsize=1)
def library() -> Library:
    """The one library; it is read when first asked for, because most servers in tests never are."""
    return Library(_read())


def _read() -> Iterator[Definition]:
    folder = package_files.files(__package__) / "types"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".types"):
            package = file.name.removesuffix(".types").replace("-", "/")
            yield from notation.parse(file.read_text(encoding="utf-8"), package)
