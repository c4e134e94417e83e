"""The parts that all objects share: the base record, metadata, owner references, label selectors, conditions,
and the Status of the API.

Records are immutable and have camelCase names on the wire. Fields that a scheduler never reads are skipped,
so a record is not a complete copy of its object: write changes with patches, never with a full update.
`selectors` matches selectors, and `errors` turns a Status into an exception.

The module also has the spelling rules for names of objects, labels and extended resources, as in
k8s.io/apimachinery/pkg/util/validation/validation.go. `is_label_key` and `is_label_value` are the API
server's checks; `qualified_name_faults` explains what is wrong with a name that a person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar, dataclass_transform

import msgspec

# The API's integer widths. Decoding rejects a number out of range, before an array overflows on it.
Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


# For type checkers only: subclasses inherit `frozen` and `kw_only`.
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
    """A mapping of a record. All readers of an object share it, so a write raises TypeError.

    It is a dict, so it is compared, encoded and read like one; a mapping proxy has no JSON form.
    """

    __slots__ = ()

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise TypeError("objects of the cluster are shared and read-only: change a copy, dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)  # the default would fill a copy item by item, which raises


EMPTY: ReadOnlyDict[Any] = ReadOnlyDict()
"""The only empty mapping, because msgspec omits a field that is its default."""


def seal(record: Record, field: str) -> None:
    """Make a mapping of a new record read-only. Called by `__post_init__`."""
    mapping = getattr(record, field)
    msgspec.structs.force_setattr(record, field, ReadOnlyDict(mapping) if mapping else EMPTY)


_LONG = 256
"""Encodings up to this many bytes are used as keys unhashed."""


def key_of(*records: Any) -> bytes:
    """Return a short key for records. Equal records have equal keys, and the key may outlive them."""
    encoded = _encode(records)
    return encoded if len(encoded) <= _LONG else blake2b(encoded, digest_size=32).digest()


_encode = msgspec.msgpack.Encoder().encode


def labels_key(labels: Mapping[str, str]) -> bytes:
    """Return a short key for labels, in any order."""
    return key_of(sorted(labels.items()))


class OwnerReference(Record):
    """One owner of an object; `controller` marks the managing one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Record):
    """Identity, labels and life cycle of an object. Times are text; see `times.parse_time`."""

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
    """Metadata of a list; `continue_` is the token of the next chunk."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Object(Record):
    """Base of all top-level objects, with shortcuts to the fields of metadata."""

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
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only because objects are shared."""
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
    """metav1.Condition, as in pod groups and disruption budgets."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class StatusCause(Record):
    """One cause of a failed request; `field` is a path such as `spec.containers[0].name`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Record):
    """The object that an ApiStatus is about, and the causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class ApiStatus(Record):
    """metav1.Status: the API server's response to a request that failed, or succeeded without an object."""

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
    """Return whether a request can name such an object: printable ASCII without "/" and "%", not "." or "..".

    The API server checks the further rules of each kind.
    """
    return _OBJECT_NAME.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Return whether the text is a name of at most 63 characters, optionally prefixed by `subdomain/`."""
    match = _LABEL_KEY.fullmatch(text) if len(text) <= 317 else None
    return match is not None and len(match["prefix"] or "") <= 253


def is_label_value(text: str) -> bool:
    """Return whether the text is empty or a name of at most 63 characters."""
    return _LABEL_VALUE.fullmatch(text) is not None


def qualified_name_faults(name: str) -> Iterator[str]:
    """Explain why `name` is not `[prefix/]name`, the form of label keys and extended resources."""
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
    """Return whether a valid resource name is an extended resource: prefixed, and not Kubernetes' own."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not list(qualified_name_faults(f"requests.{name}"))
