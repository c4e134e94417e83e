"""The query of a request: its parameters, and the options of lists, watches, writes and deletions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl

from mooring.api.errors import ApiError
from mooring.api.meta import StatusCause
from mooring.store import refusals

_MOST_PARAMETERS = 100
_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "true", "TRUE", "True"}),
    frozenset({"0", "f", "F", "false", "FALSE", "False"}),
)
_MATCHES = ("Exact", "NotOlderThan")
_VALIDATIONS = ("", "Ignore", "Warn", "Strict")
_LIST_OPTIONS = "ListOptions.meta.k8s.io"


@lru_cache(maxsize=512)
def parse(query: bytes) -> Mapping[str, str]:
    """The parameters; of a repeated one the first counts, as in the API server. Do not change the answer."""
    try:
        pairs = parse_qsl(
            query.decode(), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict"
        )
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
class ListOptions:
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


def list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Reads and judges them together, with the rules and sentences of the API server."""
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    page, initial = query.get("continue", ""), flag(query, "sendInitialEvents")
    _check_match(version, match, page, initial, watch)
    limit, timeout = number(query, "limit") or 0, number(query, "timeoutSeconds")
    exact = match == "Exact" or (limit > 0 and not match and version not in ("", "0") and not page)
    return ListOptions(
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
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    elif match and not version:
        raise _forbidden(
            "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if match and match not in _MATCHES:
        supported = ", ".join(f'"{value}"' for value in _MATCHES)
        raise _invalid("resourceVersionMatch", f'Unsupported value: "{match}": supported values: {supported}')
    if match and page:
        raise _forbidden(
            "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"
        )
    if match == "Exact" and version == "0":
        raise _forbidden(
            "resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        )
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
    return refusals.failure(
        422, "Invalid", message, causes=(StatusCause(reason=reason, message=problem, field=field),)
    )
