"""From a URL to the object that it names, the verb, and the options of the request. Pure.

    /api/v1/<plural>[/<name>[/<subresource>]]                   without namespace, or of all namespaces
    /api/v1/namespaces/<namespace>/<plural>[/<name>[/<sub>]]    of one namespace
    /apis/<group>/<version>/...                                 as above, in a named group
    /api/v1/watch/...                                           the older form of ?watch=true

Whether a plural is served, and whether it has namespaces, is the catalog's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl

from moorage.api.errors import ApiError
from moorage.api.meta import StatusCause
from moorage.store import refusals

_OF_NAMESPACES = frozenset({"status", "finalize"})
"""Third parts of /namespaces/<name>/... that are subresources and not plurals."""

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_UNSAFE = (b"%2f", b"%5c", b"%00", b"\\")
_MAX_PARAMETERS = 100
_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "true", "TRUE", "True"}),
    frozenset({"0", "f", "F", "false", "FALSE", "False"}),
)
_MATCHES = ("Exact", "NotOlderThan")
_VALIDATIONS = ("", "Ignore", "Warn", "Strict")
_LIST_OPTIONS = "ListOptions.meta.k8s.io"


class Path(NamedTuple):
    """What a path names; parts that it leaves out are empty."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def parse_path(path: str) -> Path | None:
    """The parts of an object path, already decoded; None for every other path."""
    parts = path.split("/")
    if len(parts) > 3 and not parts[-1]:
        parts.pop()
    if len(parts) < 4 or parts[0]:
        return None
    if parts[1] == "api":
        return _parse_path("", parts[2], parts[3:])
    if parts[1] == "apis" and len(parts) > 4:
        return _parse_path(parts[2], parts[3], parts[4:])
    return None


def _parse_path(group: str, version: str, rest: list[str]) -> Path | None:
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
        if not namespace:
            return None
    plural, name, subresource = rest[0], rest[1] if len(rest) > 1 else "", "/".join(rest[2:])
    if not plural or (len(rest) > 1 and not name) or (len(rest) > 2 and not subresource):
        return None
    return Path(group, version, plural, namespace, name, subresource, watch)


def verb_of(method: str, path: Path, watch: bool) -> str:
    """The verb, as access rules name it; empty for a method that the API does not have."""
    verb = _VERBS.get(method, "")
    if path.subresource or path.name:
        if verb == "get" and path.watch:
            return "watch"
        return verb if verb != "create" or path.subresource else ""
    if verb == "get":
        return "watch" if watch or path.watch else "list"
    if verb == "delete":
        return "deletecollection"
    return "create" if verb == "create" else ""


def check_path(raw_path: bytes) -> None:
    """Refuses paths that could be read in two ways; names of objects never need such forms."""
    lowered = raw_path.lower()
    for form in _UNSAFE:
        if form in lowered:
            raise _ambiguous(f"contains {form.decode()!r}")
    if b"/." in lowered and any(part in (b".", b"..") for part in lowered.split(b"/")):
        raise _ambiguous("contains a part '.' or '..'")
    if b"%2e" in lowered:
        raise _ambiguous("contains an encoded dot")


def _ambiguous(why: str) -> ApiError:
    return refusals.bad_request(f"the path of the request {why}; write the names of objects as they are")


@lru_cache(maxsize=512)
def parse_query(query: bytes) -> Mapping[str, str]:
    """The parameters; of a repeated one the first counts, as in the API server. Do not change the answer."""
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS, errors="strict")
    except ValueError as error:
        raise refusals.bad_request(f"the query of the request is not readable: {error}") from error
    parameters: dict[str, str] = {}
    for name, value in pairs:
        parameters.setdefault(name, value)
    return parameters


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """A yes or no; None when it is not there. A bare name means yes."""
    text = query.get(name)
    if text is None:
        return None
    if text in _TRUE or not text:
        return True
    if text in _FALSE:
        return False
    raise refusals.bad_request(f'{name}: strconv.ParseBool: parsing "{text}": invalid syntax')


def number(query: Mapping[str, str], name: str) -> int | None:
    """A whole number of 64 bits; None when it is not there."""
    text = query.get(name)
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise refusals.bad_request(f'{name}: strconv.ParseInt: parsing "{text[:80]}": invalid syntax')
    if len(digits) > 19 or not -(2**63) <= int(text) < 2**63:
        raise refusals.bad_request(f'{name}: strconv.ParseInt: parsing "{text[:80]}": value out of range')
    return int(text)


def dry_run(query: Mapping[str, str]) -> bool:
    text = query.get("dryRun", "")
    if text not in ("", "All"):
        problem = f'Unsupported value: "{text}": supported values: "All"'
        raise refusals.failure(422, "Invalid", f"dryRun: {problem}")
    return text == "All"


def field_validation(query: Mapping[str, str]) -> str:
    text = query.get("fieldValidation", "")
    if text not in _VALIDATIONS:
        supported = ", ".join(f'"{value}"' for value in _VALIDATIONS)
        problem = f'Unsupported value: "{text}": supported values: {supported}'
        raise refusals.failure(422, "Invalid", f"fieldValidation: {problem}")
    return text


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a list, watch or deletecollection asks for."""

    label_selector: str
    field_selector: str
    resource_version: str
    exact: bool
    """The list must show the very version that is named."""
    limit: int
    page: str
    bookmarks: bool
    send_initial_events: bool | None
    timeout: float | None


def list_options(query: Mapping[str, str], *, watch: bool) -> ListQuery:
    """Reads and judges them together, with the rules and sentences of the API server."""
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    page, initial = query.get("continue", ""), flag(query, "sendInitialEvents")
    _check_match(version, match, page, initial, watch)
    limit, timeout = number(query, "limit") or 0, number(query, "timeoutSeconds")
    exact = match == "Exact" or (limit > 0 and not match and version not in ("", "0") and not page)
    return ListQuery(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=version,
        exact=exact and not watch,
        limit=max(limit, 0),
        page=page,
        bookmarks=bool(flag(query, "allowWatchBookmarks")),
        send_initial_events=initial,
        timeout=None if not timeout or timeout < 0 else float(timeout),
    )


def _check_match(version: str, match: str, page: str, initial: bool | None, watch: bool) -> None:
    if initial is not None:
        _check_initial(match, watch)
    elif match and watch:
        raise _forbidden(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    elif match and not version:
        raise _forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match and match not in _MATCHES:
        supported = ", ".join(f'"{value}"' for value in _MATCHES)
        raise _invalid("resourceVersionMatch", f'Unsupported value: "{match}": supported values: {supported}')
    if match and page:
        raise _forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
    if match == "Exact" and version == "0":
        raise _forbidden("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if page and version not in ("", "0"):
        raise refusals.bad_request("specifying resource version is not allowed when using continue")


def _check_initial(match: str, watch: bool) -> None:
    if not watch:
        raise _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if match != "NotOlderThan":
        raise _forbidden(
            "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )


def _forbidden(field: str, why: str) -> ApiError:
    return _invalid(field, f"Forbidden: {why}", "FieldValueForbidden")


def _invalid(field: str, problem: str, reason: str = "FieldValueNotSupported") -> ApiError:
    message = f'{_LIST_OPTIONS} "" is invalid: {field}: {problem}'
    return refusals.failure(422, "Invalid", message, causes=(StatusCause(reason=reason, message=problem, field=field),))
