"""Refusals with the codes, reasons and sentences of the API server, as exceptions of `api.errors`.

The sentences are part of the behaviour: clients tell one 409 from another by them.
"""

from __future__ import annotations

from moorage.api.errors import ApiError, from_status
from moorage.api.meta import ApiStatus, StatusCause, StatusDetails
from moorage.api.resources import Resource

CHANGED = "the object has been modified; please apply your changes to the latest version and try again"


DISK_FULL = 507


def failure(
    code: int,
    reason: str,
    message: str,
    *,
    resource: Resource | None = None,
    name: str = "",
    causes: tuple[StatusCause, ...] = (),
    retry_after: int = 0,
    kind: str = "",
) -> ApiError:
    """The exception of one failed request. Its details name the resource's plural, or `kind` if given."""
    group, plural = (resource.group, resource.plural) if resource else ("", "")
    details = StatusDetails(name=name, group=group, kind=kind or plural, causes=causes, retry_after_seconds=retry_after)
    return from_status(
        ApiStatus(
            api_version="v1",
            kind="Status",
            status="Failure",
            message=message,
            reason=reason,
            details=details,
            code=code,
        )
    )


def qualified(resource: Resource) -> str:
    """`pods` or `leases.coordination.k8s.io`, as messages name resources."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def not_found(resource: Resource, name: str) -> ApiError:
    return failure(404, "NotFound", f'{qualified(resource)} "{name}" not found', resource=resource, name=name)


def no_subresource(resource: Resource, subresource: str) -> ApiError:
    message = f"the server could not find the requested resource ({resource.plural}/{subresource})"
    return failure(404, "NotFound", message, resource=resource)


def already_exists(resource: Resource, name: str) -> ApiError:
    message = f'{qualified(resource)} "{name}" already exists'
    return failure(409, "AlreadyExists", message, resource=resource, name=name)


def conflict(resource: Resource, name: str, why: str, *, on: str = "") -> ApiError:
    """`on` replaces the resource's name in the message, as subresources and deletions do."""
    message = f'Operation cannot be fulfilled on {on or qualified(resource)} "{name}": {why}'
    return failure(409, "Conflict", message, resource=resource, name=name)


def uid_mismatch(resource: Resource, namespace: str, name: str, wanted: str, found: str) -> ApiError:
    """The storage layer's refusal of a UID precondition on a write."""
    return conflict(resource, name, _precondition(resource, namespace, name, "UID", wanted, found))


def version_mismatch(resource: Resource, namespace: str, name: str, wanted: str, found: str) -> ApiError:
    """The storage layer's refusal of a resourceVersion precondition on a write."""
    return conflict(resource, name, _precondition(resource, namespace, name, "ResourceVersion", wanted, found))


def _precondition(resource: Resource, namespace: str, name: str, what: str, wanted: str, found: str) -> str:
    path = "/".join(filter(None, ("/registry", resource.plural, namespace, name)))
    return (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    )


def invalid(resource: Resource, name: str, field: str, problem: str) -> ApiError:
    message = f'{resource.kind} "{name}" is invalid: {field}: {problem}'
    cause = StatusCause(reason="FieldValueInvalid", message=problem, field=field)
    return failure(422, "Invalid", message, resource=resource, name=name, causes=(cause,))


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    message = f'{qualified(resource)} "{name}" is forbidden: {why}'
    return failure(403, "Forbidden", message, resource=resource, name=name)


def bad_request(message: str) -> ApiError:
    return failure(400, "BadRequest", message)


def unsupported_patch(accepted: str) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return failure(415, "UnsupportedMediaType", message)


def too_old(wanted: int, oldest: int) -> ApiError:
    return failure(410, "Expired", f"too old resource version: {wanted} ({oldest})")


def page_expired() -> ApiError:
    message = (
        "The provided continue parameter is too old to display a consistent list result. "
        "You must start a new list without the continue parameter."
    )
    return failure(410, "Expired", message)


def too_slow() -> ApiError:
    """For a watcher that fell behind further than its buffer reaches."""
    return failure(410, "Expired", "too old resource version: the watch fell behind and was ended")


def too_large(wanted: int, current: int) -> ApiError:
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    return failure(504, "Timeout", message, causes=(cause,), retry_after=1)


def disk_full(message: str) -> ApiError:
    """For a write that had no room; the next one may."""
    return failure(DISK_FULL, "InsufficientStorage", message)


def disk_broken(message: str) -> ApiError:
    """For writes after the disk has failed."""
    return failure(500, "InternalError", message)
