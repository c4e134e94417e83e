"""Fields that a kind does not have: refused or warned of, as the client asks with `fieldValidation`.

Without the parameter nothing is checked: what writes often, such as controllers and schedulers, does not ask.
"""

from __future__ import annotations

from mooring.api.errors import ApiError
from mooring.api.meta import StatusCause
from mooring.embedded.apiserver import queries
from mooring.embedded.apiserver.calls import Call
from mooring.embedded.catalog.fields import STRICT, unknown_fields
from mooring.store import refusals
from mooring.store.objects import Raw


def wanted(call: Call) -> bool:
    return queries.field_validation(call.query) in ("Strict", "Warn")


def check(call: Call, raw: Raw) -> None:
    """For the object in a body; a 400 if it is refused."""
    unknown = unknown_fields(call.served, raw) if wanted(call) else []
    if unknown and _is_strict(call):
        resource = call.served.resource
        head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        raise refusals.bad_request(head + STRICT + ", ".join(unknown))
    call.warnings += unknown


def check_patched(call: Call, before: Raw, after: Raw) -> None:
    """For the outcome of a patch; a 422 if it is refused. Only what the patch has added counts."""
    unknown = unknown_fields(call.served, after) if wanted(call) else []
    if unknown:
        old = set(unknown_fields(call.served, before))
        unknown = [field for field in unknown if field not in old]
    if unknown and _is_strict(call):
        raise _invalid_patch(call, STRICT + ", ".join(unknown))
    call.warnings += unknown


def _is_strict(call: Call) -> bool:
    return queries.field_validation(call.query) == "Strict"


def _invalid_patch(call: Call, problem: str) -> ApiError:
    resource, name = call.served.resource, call.path.name
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'{kind} "{name}" is invalid: patch: Invalid value: {problem}'
    causes = (StatusCause(reason="FieldValueInvalid", message=f"Invalid value: {problem}", field="patch"),)
    return refusals.failure(
        422, "Invalid", message, resource=resource, name=name, causes=causes, kind=resource.kind
    )
