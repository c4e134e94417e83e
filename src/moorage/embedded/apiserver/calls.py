"""One request about objects of a served kind: what its handlers need and share, and those of GET."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from moorage.api import resources
from moorage.api.errors import ApiError, NotFound, SelectorError
from moorage.api.meta import StatusCause
from moorage.api.resources import Resource
from moorage.api.selectors import parse_field_selector
from moorage.embedded.apiserver import bodies, urls
from moorage.embedded.apiserver.presentation import Presenter
from moorage.embedded.apiserver.urls import Path
from moorage.embedded.catalog.kinds import ServedKind
from moorage.embedded.http import ServerAnswer
from moorage.serving.certificates import User
from moorage.store import refusals
from moorage.store.objects import Raw, Stored
from moorage.store.store import Store

T = TypeVar("T")

_MAX_WARNING_LENGTH, _MAX_WARNINGS = 256, 16
"""Letters of a Warning header, and how many of them an answer has."""
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


@dataclass(slots=True)
class ApiCall:
    """One request. `verb` is the API's: get, list, watch, create, update, patch, delete, deletecollection."""

    store: Store
    served: ServedKind
    path: Path
    verb: str
    query: Mapping[str, str]
    body: bytes
    content_type: str
    presenter: Presenter
    user: User
    wall: Callable[[], float]
    warnings: list[str] = field(default_factory=list)
    """What the client gets to read beside the answer."""

    @property
    def resource(self) -> Resource:
        """What the store holds the objects under."""
        return self.served.stored

    @property
    def dry_run(self) -> bool:
        return urls.dry_run(self.query)

    def current(self) -> Stored:
        """The object that the path names."""
        return self.store.get(self.resource, self.path.name, self.path.namespace)

    def read_object(self) -> Raw:
        strict = urls.field_validation(self.query) == "Strict"
        return bodies.read_object(self.body, self.content_type, strict=strict)

    def answer(self, stored: Stored, status: int = 200) -> ServerAnswer:
        return ServerAnswer(status, self.presenter.object(stored), headers=self.warning_headers())

    def warning_headers(self) -> tuple[tuple[str, str], ...]:
        warnings = [*filter(None, (self.served.warning,)), *self.warnings]
        return tuple(("Warning", f"299 - {_quoted(warning)}") for warning in warnings[:_MAX_WARNINGS])


def _quoted(text: str) -> str:
    """As a quoted string of HTTP: printable, and not longer than the API server's."""
    shown = "".join([letter if letter.isprintable() else "?" for letter in text[:_MAX_WARNING_LENGTH]])
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def convert(raw: Raw, kind: type[T], named: str) -> T:
    """A small object such as a Binding or DeleteOptions; BadRequest names what does not fit."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise refusals.bad_request(f"the {named} is not readable: {error}") from error


def success(status: int = 200, details: Raw | None = None) -> ServerAnswer:
    """A Status of success."""
    body: dict[str, Any] = {**_SUCCESS, **({"details": details} if details else {})}
    if status != 200:
        body["code"] = status
    return ServerAnswer(status, msgspec.json.encode(body))


def not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return refusals.failure(405, "MethodNotAllowed", message)


def check_namespace(store: Store, served: ServedKind, namespace: str, name: str) -> None:
    """New objects need a namespace that is there and stays."""
    try:
        found = store.get(resources.NAMESPACES, namespace)
    except NotFound:
        raise refusals.not_found(resources.NAMESPACES, namespace) from None
    if "deletionTimestamp" in found.raw["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        message = f'{refusals.qualified(served.resource)} "{name}" is forbidden: {why}'
        cause = StatusCause(
            reason="NamespaceTerminating",
            message=f"namespace {namespace} is being terminated",
            field="metadata.namespace",
        )
        raise refusals.failure(403, "Forbidden", message, resource=served.resource, name=name, causes=(cause,))


def get(call: ApiCall) -> ServerAnswer:
    return call.answer(call.current())


def list_(call: ApiCall) -> ServerAnswer:
    options = urls.list_options(call.query, watch=False)
    listing = call.store.list(
        call.resource,
        namespace=call.path.namespace,
        label_selector=options.label_selector,
        field_selector=stored_fields(call.served, options.field_selector),
        resource_version=options.resource_version,
        exact=options.exact,
        limit=options.limit,
        page=options.page,
    )
    return ServerAnswer(200, call.presenter.list(listing), headers=call.warning_headers())


def stored_fields(served: ServedKind, field_selector: str) -> str:
    """A field selector in the names of the stored form."""
    if served.view is None or not field_selector:
        return field_selector
    try:
        terms = parse_field_selector(field_selector).requirements
    except SelectorError as error:
        raise refusals.bad_request(str(error)) from error
    return ",".join(
        f"{served.view.field(term.path)}{'!=' if term.negated else '='}{_escaped(term.value)}" for term in terms
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
