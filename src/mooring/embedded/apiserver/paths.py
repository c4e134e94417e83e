"""From a URL path to the object that it names, and from method and path to the verb. Pure.

    /api/v1/<plural>[/<name>[/<subresource>]]                   without namespace, or of all namespaces
    /api/v1/namespaces/<namespace>/<plural>[/<name>[/<sub>]]    of one namespace
    /apis/<group>/<version>/...                                 the same in a named group
    /api/v1/watch/...                                           the older form of ?watch=true

Whether a plural is served, and whether it has namespaces, is the catalog's to say.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.errors import ApiError
from mooring.store import refusals

_OF_NAMESPACES = frozenset({"status", "finalize"})
"""Third parts of /namespaces/<name>/... that are subresources and not plurals."""

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_UNSAFE = (b"%2f", b"%5c", b"%00", b"\\")


class Path(NamedTuple):
    """What a path names; parts that it leaves out are empty."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def parse(path: str) -> Path | None:
    """The parts of an object path, already decoded; None for every other path."""
    parts = path.split("/")
    if len(parts) > 3 and not parts[-1]:
        parts.pop()
    if len(parts) < 4 or parts[0]:
        return None
    if parts[1] == "api":
        return _parse("", parts[2], parts[3:])
    if parts[1] == "apis" and len(parts) > 4:
        return _parse(parts[2], parts[3], parts[4:])
    return None


def _parse(group: str, version: str, rest: list[str]) -> Path | None:
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


def check(raw_path: bytes) -> None:
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
