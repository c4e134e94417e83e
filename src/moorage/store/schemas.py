"""All types of the API, read when first asked for from the files in `types/`, and the notation of these.

There is one file for each API package, with one block for each type.

    package io.k8s.api.core.v1             how OpenAPI calls the package
    serves v1                              the apiVersion of its kinds

    kind Pod  -- Runs containers.          a type; `kind` has apiVersion and kind besides its fields
      spec: PodSpec  -- What to run.       a field, with a description
    PodSpec
      containers!: [Container] merge=name  required; a list; patches merge it by the key `name`
      volumes: [Volume] merge=name retainKeys
      nodeSelector: {string}               a map
      priority: int32
    FreeForm: any                          a type without known fields

A name with a slash is a type of another package: `meta/v1.LabelSelector`. The small letters are plain types:
string, bytes, time, microTime, int32, int64, float, bool, quantity, intOrString, any. `merge` without a key
is for lists of plain values; `keys=a,b` and `set` say what makes an element unique.

`@4` is the number of the field in Protocol Buffers, `@2.4` number 4 inside of message number 2, whose fields
JSON shows here. A `~` after it says that zero, false or the empty text mean that the field is not set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources as package_files
from typing import TypeAlias

PLAIN = frozenset(
    "string bytes time microTime int32 int64 float bool quantity intOrString any".split()  # noqa: SIM905
)


class NotationError(ValueError):
    """A line of a types file is not in the notation."""


@dataclass(frozen=True, slots=True)
class Plain:
    """One of PLAIN."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """Another type: its package as files are named (`core/v1`), and its name there."""

    package: str
    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: Type


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map with string keys."""

    item: Type


Type: TypeAlias = Plain | Ref | ListOf | MapOf


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a type."""

    name: str
    type: Type
    required: bool = False
    description: str = ""
    merge: bool = False
    merge_key: str = ""
    retain_keys: bool = False
    map_keys: tuple[str, ...] = ()
    is_set: bool = False
    number: tuple[int, ...] = ()
    """In Protocol Buffers; several for fields of an inner message that JSON shows as its own."""
    zero_is_unset: bool = False


@dataclass(slots=True)
class Definition:
    """One type. `fields` is None where anything is allowed."""

    package: str
    name: str
    openapi_name: str
    api_version: str = ""
    """Set for kinds only."""
    description: str = ""
    fields: dict[str, Field] | None = field(default_factory=dict)


def parse(text: str, package: str) -> Iterator[Definition]:
    """Yield the definitions of one file; `package` is its name."""
    prefix = api_version = ""
    current: Definition | None = None
    for line in text.splitlines():
        if line.startswith("package "):
            prefix = line.removeprefix("package ")
        elif line.startswith("serves "):
            api_version = line.removeprefix("serves ")
        elif line.startswith("  "):
            if current is None or current.fields is None:
                raise NotationError(f"{package}: a field outside of a type: {line!r}")
            found = _field(line.strip(), package)
            current.fields[found.name] = found
        elif line:
            if current is not None:
                yield current
            current = _definition(line, package, prefix, api_version)
    if current is not None:
        yield current


def _definition(line: str, package: str, prefix: str, api_version: str) -> Definition:
    head, _, description = line.partition("  -- ")
    free = head.endswith(": any")
    name = head.removesuffix(": any").removeprefix("kind ")
    return Definition(
        package,
        name,
        f"{prefix}.{name}",
        api_version if head.startswith("kind ") else "",
        description,
        None if free else {},
    )


def _field(line: str, package: str) -> Field:
    declaration, _, description = line.partition("  -- ")
    name, _, rest = declaration.partition(": ")
    if not rest:
        raise NotationError(f"{package}: a field without a type: {line!r}")
    type_, *options = rest.split()
    by_name = dict(option.partition("=")[::2] for option in options)
    number = next((option[1:] for option in options if option.startswith("@")), "")
    return Field(
        name.removesuffix("!"),
        _type(type_, package),
        required=name.endswith("!"),
        description=description,
        merge="merge" in by_name,
        merge_key=by_name.get("merge", ""),
        retain_keys="retainKeys" in by_name,
        map_keys=tuple(filter(None, by_name.get("keys", "").split(","))),
        is_set="set" in by_name,
        number=tuple(int(part) for part in number.removesuffix("~").split(".") if part),
        zero_is_unset=number.endswith("~"),
    )


def _type(text: str, package: str) -> Type:
    if text.startswith("[") and text.endswith("]"):
        return ListOf(_type(text[1:-1], package))
    if text.startswith("{") and text.endswith("}"):
        return MapOf(_type(text[1:-1], package))
    if text in PLAIN:
        return Plain(text)
    other, dot, name = text.partition(".")
    if "/" in other and dot:
        return Ref(other, name)
    if not text[:1].isupper():
        raise NotationError(f"{package}: unknown plain type {text!r}")
    return Ref(package, text)


_STRING = Plain("string")
TYPE_FIELDS = {
    "apiVersion": Field("apiVersion", _STRING, description="The group and version of this form of the object."),
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
        """Return a kind, or None if no file describes it."""
        return self._by_kind.get((api_version, kind))

    def kinds(self) -> Iterator[Definition]:
        return iter(self._by_kind.values())

    def all(self) -> Iterator[Definition]:
        return iter(self._by_ref.values())


@cache
def library() -> Library:
    """Return the library. It is read on first use, because most tests never need it."""
    return Library(_read())


def _read() -> Iterator[Definition]:
    folder = package_files.files(__package__) / "types"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".types"):
            package = file.name.removesuffix(".types").replace("-", "/")
            yield from parse(file.read_text(encoding="utf-8"), package)


@cache
def has_status(api_version: str, kind: str) -> bool:
    """Return whether a built-in kind has a status, which clients write through its subresource only.

    The answer is no for custom kinds: in the store their status is a part of the object.
    """
    definition = library().kind(api_version, kind)
    return definition is not None and definition.fields is not None and "status" in definition.fields
