"""Requests and answers of the API server, as values that its parts hand to each other.

Shared by `apiserver`, which reads requests from the wire, authenticates and routes them, and by `catalog`,
whose endpoints (discovery, OpenAPI, reviews, metrics) answer some of them. Neither imports the other for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from moorage.api.errors import ApiError
from moorage.serving.certificates import User
from moorage.store import refusals

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request, read completely. Header names are in lower case; of a repeated one the last is kept."""

    method: str
    path: str
    """Decoded, without the query."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = ANONYMOUS

    @property
    def accept(self) -> str:
        """Media types the client can read, with their parameters; anything if it does not say."""
        return self.headers.get("accept") or "*/*"


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """One answer, complete. `headers` are those beyond content type and length."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Endpoint(Protocol):
    """Answers the paths that are not plain objects of the store."""

    def answer(self, request: ApiRequest) -> ServerAnswer | None:
        """None: not mine. An `ApiError` that is raised becomes its Status. Must not wait for anything."""
        ...


def json_answer(value: Any, status: int = 200) -> ServerAnswer:
    return ServerAnswer(status, msgspec.json.encode(value))


def text_answer(text: str, status: int = 200) -> ServerAnswer:
    return ServerAnswer(status, text.encode(), TEXT)


def refusal_answer(error: ApiError) -> ServerAnswer:
    """The Status of a refusal, with Retry-After where it has one."""
    wait = error.retry_after
    headers = (("Retry-After", str(int(wait))),) if wait is not None else ()
    return ServerAnswer(error.code, msgspec.json.encode(status_json(error)), JSON, headers)


def status_json(error: ApiError) -> dict[str, Any]:
    """A refusal as metav1.Status, with the fields in the API server's order."""
    status = error.status
    head: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    head["message"] = status.message
    if status.reason:
        head["reason"] = status.reason
    details = msgspec.to_builtins(status.details) if status.details is not None else {}
    if details:
        head["details"] = details
    return {**head, "code": error.code}


def page_not_found() -> ApiError:
    """For a path that is not served, as clients get it for an unknown group or resource."""
    return refusals.failure(404, "NotFound", "the server could not find the requested resource")
