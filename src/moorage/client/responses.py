"""What an answer of the API server means: objects, lists, or the error it stands for. No I/O.

Everything that is not what was asked for becomes an error with the way out: a page of a proxy, a Table, an
object of another kind. Only a single object of a list that cannot be read is set aside; the others are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from moorage.api import decoding
from moorage.api.errors import ApiError, BadAnswer, ObjectError, from_status
from moorage.api.meta import ApiStatus, ListMeta, Object, Record
from moorage.api.resources import AnyObject, Resource, Unstructured
from moorage.client.pacing import MAX_RETRY_AFTER
from moorage.client.transport import HttpRequest
from moorage.framework.ports import Malformed

SHOWN = 200
"""Characters of a strange answer that an error shows."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Envelope(Record):
    """A list before its items are read."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _Type(Record):
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


_envelope = msgspec.json.Decoder(Envelope)
_status = msgspec.json.Decoder(ApiStatus)
_type = msgspec.json.Decoder(_Type)


def check_encoding(headers: Mapping[str, str], request: HttpRequest) -> None:
    """Compressed answers are never asked for, so that none can blow up in memory."""
    encoding = headers.get("content-encoding", "")
    if encoding not in ("", "identity"):
        raise BadAnswer(
            f"{request.method} {request.path}: the answer is encoded as {encoding!r}, unasked; "
            "look for a proxy between Moorage and the API server"
        )


def failure(answer: Answer, request: HttpRequest, wall: float) -> ApiError:
    """The error that an answer stands for. `wall` is the time now, for dates in Retry-After."""
    status = _status_of(answer.body)
    message = status.message or _explain(answer, request)
    # The code of the answer wins: intermediaries change that one, and not the body.
    status = msgspec.structs.replace(status, code=answer.status, message=message)
    return from_status(status, _retry_after(answer.headers.get("retry-after", ""), wall))


def read_object(resource: Resource, body: bytes, request: HttpRequest) -> AnyObject:
    """The object of an answer; ObjectError when it is one of that kind but malformed."""
    kind = _kind_of(body, request)
    if kind != resource.kind:
        raise BadAnswer(f"{request.method} {request.path}: expected a {resource.kind}, found {_a(kind)}")
    return decoding.decode(resource, body)


def check_done(body: bytes, request: HttpRequest) -> None:
    """For an answer that only says that it was done; a page that some proxy gave with a 200 does not."""
    if not _kind_of(body, request):
        raise BadAnswer(f"{request.method} {request.path}: the answer is {_a('')}: {shown(body)!r}")


def read_list(resource: Resource, body: bytes, request: HttpRequest) -> Envelope:
    """The list of an answer, its items still unread."""
    try:
        envelope = _envelope.decode(body)
    except _UNREADABLE as error:
        raise _not_an_answer(body, request, error) from error
    expected = f"{resource.kind}List"
    # A custom resource may name its list as it likes, and a server that has no metadata alone sends objects.
    free = resource.type is Unstructured or resource.type is Object
    named = envelope.kind.endswith("List") if free else envelope.kind == expected
    if not named:
        found = _a(envelope.kind)
        raise BadAnswer(f"{request.method} {request.path}: expected a {expected}, found {found}")
    return envelope


def item_reader(resource: Resource) -> Callable[[decoding.JSON], AnyObject | Malformed]:
    """Reads the items of a list one by one; unreadable ones come out as Malformed."""
    read = decoding.reader(resource)

    def read_item(raw: decoding.JSON) -> AnyObject | Malformed:
        try:
            return read(raw)
        except ObjectError as error:
            return malformed(resource, error)

    return read_item


def malformed(resource: Resource, error: ObjectError) -> Malformed:
    return Malformed(error.object.removeprefix(f"{resource.kind} "), str(error))


def _status_of(body: bytes) -> ApiStatus:
    try:
        status = _status.decode(body)
    except _UNREADABLE:
        return ApiStatus()
    return status if status.kind == "Status" else ApiStatus()


def _kind_of(body: bytes, request: HttpRequest) -> str:
    try:
        return _type.decode(body).kind
    except _UNREADABLE as error:
        raise _not_an_answer(body, request, error) from error


def _explain(answer: Answer, request: HttpRequest) -> str:
    if 300 <= answer.status < 400:
        target = answer.headers.get("location", "nowhere")
        return (
            f"{request.method} {request.path} is redirected to {shown(target)}, which is not followed; "
            "check the address of the API server"
        )
    return shown(answer.body) or "the API server gave no message"


def _not_an_answer(body: bytes, request: HttpRequest, error: Exception) -> BadAnswer:
    what = "an HTML page" if body.lstrip()[:1] == b"<" else "no JSON of the API"
    return BadAnswer(
        f"{request.method} {request.path}: the answer is {what} ({error}): {shown(body)!r}; "
        "check the address of the API server and proxies on the way"
    )


def shown(text: bytes | str) -> str:
    """The beginning of a text from outside, on one line."""
    text = text[: SHOWN * 4].decode("utf-8", "replace") if isinstance(text, bytes) else text
    line = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(line.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."


def _a(kind: str) -> str:
    return f"a {shown(kind)}" if kind else "an object without kind"


def _retry_after(value: str, wall: float) -> float | None:
    """Seconds, at most a minute; None when the header is absent or makes no sense."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        # Beyond a few digits the number itself does not matter any more.
        return float(min(int(value[:9]), MAX_RETRY_AFTER))
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None
    if date.tzinfo is None:
        return None
    return min(max(date.timestamp() - wall, 0.0), MAX_RETRY_AFTER)


def list_parts(items: list[Any]) -> tuple[list[AnyObject], list[Malformed]]:
    """Good and bad ones apart, each in order."""
    bad = [obj for obj in items if isinstance(obj, Malformed)]
    return ([obj for obj in items if not isinstance(obj, Malformed)] if bad else items), bad
