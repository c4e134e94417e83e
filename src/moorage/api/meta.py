"""What all objects share: the base record, metadata, owner references, label selectors, conditions, and the
API's Status.

Records are immutable, with camelCase names on the wire. Fields that no part of a scheduler reads are left out
and skipped while decoding, so a record is not a complete copy of the object it came from: write back with
patches, never with a full update. Matching of selectors lives in `selectors`; exceptions made from a Status
in `errors`.

Below them are the spelling rules of names: of objects, label keys and values, qualified names, extended
resources. `is_label_key` and `is_label_value` are the API server's checks of labels; where a person wrote the
name, `qualified_name_faults` says in words what is wrong with it. The caller knows the field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar, dataclass_transform

import msgspec

# The API's integer widths. A number outside is refused while decoding, not by an array three layers up.
Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


# The decorator is for type checkers only: it tells them that subclasses inherit `frozen` and `kw_only`.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(
    msgspec.Struct,
    frozen=True,
    gc=False,  # records never form cycles; keeping them out of the collector matters at 100,000 pods
    kw_only=True,
    omit_defaults=True,
    rename="camel",
):
    """An immutable value. Attributes are snake_case, wire names camelCase; unknown fields are ignored."""


V = TypeVar("V")


class ReadOnlyDict(dict[str, V]):
    """A mapping of a record. Whoever reads an object shares it, so a write raises TypeError. As a kind of
    dictionary it is compared and encoded as one and read nearly as fast; a mapping proxy has no JSON."""

    __slots__ = ()

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise TypeError("objects of the cluster are shared and read-only: change a copy, dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)  # by default a copy is filled item by item


EMPTY: ReadOnlyDict[Any] = ReadOnlyDict()
"""The one mapping without entries: msgspec leaves out a field that is its default."""


def seal(record: Record, field: str) -> None:
    """Make a mapping of a new record read-only; `__post_init__` calls it for what is not."""
    mapping = getattr(record, field)
    msgspec.structs.force_setattr(record, field, ReadOnlyDict(mapping) if mapping else EMPTY)


_LONG = 256
"""Bytes up to which an encoding stands for itself."""


def key_of(*records: Any) -> bytes:
    """Stands for records in keys that outlive them: equal for equal ones, and never long."""
    encoded = _encode(records)
    return encoded if len(encoded) <= _LONG else blake2b(encoded, digest_size=32).digest()


_encode = msgspec.msgpack.Encoder().encode


class OwnerReference(Record):
    """One owner of an object; `controller` marks the managing one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Record):
    """Identity, labels and life cycle of one object. Times stay text; see `times.parse_time`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = EMPTY
    annotations: Mapping[str, str] = EMPTY
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.labels) is not ReadOnlyDict:
            seal(self, "labels")
        if type(self.annotations) is not ReadOnlyDict:
            seal(self, "annotations")


class ListMeta(Record):
    """Metadata of a list answer; `continue_` is the token of the next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Object(Record):
    """Base of all top-level objects, with the identity readable without going through metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of an object without namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Read-only: objects are shared by all who read them."""
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version


class LabelSelectorRequirement(Record):
    """One expression of a label selector: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Record):
    """A selector over labels; all its parts must hold. Compile it with `selectors.compile_label_selector`."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Record):
    """metav1.Condition, as pod groups and disruption budgets carry it."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class StatusCause(Record):
    """One of the reasons of a failed request; `field` is a path such as `spec.containers[0].name`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Record):
    """The object a Status speaks about, and the single causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Record):
    """metav1.Status: the API server's answer to a request that failed, or succeeded without an object."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = ListMeta()
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_DOMAIN = re.compile(_SUBDOMAIN)
_LABEL = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:(?P<prefix>{_SUBDOMAIN})/)?{_LABEL}")
_LABEL_VALUE = re.compile(rf"(?:{_LABEL})?")
_OBJECT_NAME = re.compile(r"(?!\.{1,2}$)[!-$&-.0-~]+")


def is_object_name(text: str) -> bool:
    """Whether an object of this name can be asked for: printable ASCII without "/" and "%", not "." or "..".
    What the rules of each kind demand beyond that is the API server's business."""
    return _OBJECT_NAME.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """A name of at most 63 characters, optionally after a DNS subdomain of at most 253 and a slash."""
    match = _LABEL_KEY.fullmatch(text) if len(text) <= 317 else None
    return match is not None and len(match["prefix"] or "") <= 253


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 characters as in a name."""
    return _LABEL_VALUE.fullmatch(text) is not None


def qualified_name_faults(name: str) -> Iterator[str]:
    """What keeps `name` from being `[prefix/]name`, as label keys and extended resources are."""
    *prefixes, last = name.split("/")
    if len(prefixes) > 1:
        yield "a qualified name has at most one '/', between a DNS subdomain and the name"
        return
    for prefix in prefixes:
        if not prefix:
            yield "prefix part must be non-empty"
        elif len(prefix) > 253 or not _DOMAIN.fullmatch(prefix):
            yield "prefix part must be a lowercase DNS subdomain of at most 253 characters"
    if not last:
        yield "name part must be non-empty"
    elif len(last) > 63:
        yield "name part must be no more than 63 characters"
    elif not _NAME.fullmatch(last):
        yield (
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )


def is_extended_resource(name: str) -> bool:
    """Whether a well-spelled resource name is an extended one: prefixed, and not Kubernetes' own."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not list(qualified_name_faults(f"requests.{name}"))
