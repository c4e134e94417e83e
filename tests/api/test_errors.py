"""The error tree: mapping from a Status, and messages that name the object, the field and the remedy."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import pytest

from moorage.api import errors
from moorage.api.errors import ApiError, ObjectError, from_status
from moorage.api.meta import ApiStatus, StatusCause, StatusDetails


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (410, "Gone", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServiceUnavailable),
        (504, "Timeout", errors.GatewayTimeout),
        (418, "", ApiError),
        (0, "Expired", errors.Gone),
    ],
)
def test_each_status_becomes_its_own_type(code, reason, expected):
    error = from_status(ApiStatus(code=code, reason=reason, message="m"))
    assert expected is type(error)
    assert code == error.code
    assert reason == error.reason


def test_the_tree_is_as_drawn():
    assert issubclass(errors.AlreadyExists, errors.Conflict)
    assert issubclass(errors.GatewayTimeout, errors.ServerError)
    assert issubclass(errors.NotSent, errors.TransportError)
    assert issubclass(errors.OutcomeUnknown, errors.TransportError)
    drawn = {line.split()[-1] for line in (errors.__doc__ or "").splitlines() if line.strip() == "MoorageError"}
    assert drawn == {"MoorageError"}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.MoorageError):
            assert name in (errors.__doc__ or ""), f"{name} is missing in the drawing"


def test_retry_after_comes_from_the_header_or_the_details():
    status = ApiStatus(code=429, details=StatusDetails(retry_after_seconds=7))
    assert from_status(status).retry_after == 7.0
    assert from_status(status, retry_after=2.0).retry_after == 2.0
    assert from_status(ApiStatus(code=429)).retry_after is None


def test_the_message_names_fields_and_the_way_out():
    causes = (StatusCause(field="spec.nodeName", message="required"),)
    error = from_status(ApiStatus(code=422, reason="Invalid", message="pod x", details=StatusDetails(causes=causes)))
    assert str(error) == "422 Invalid: pod x; spec.nodeName: required; correct the fields named above"


def test_an_object_error_keeps_its_parts():
    error = ObjectError("Pod a/b", "spec.priority", "too large")
    assert (error.object, error.field, error.message) == ("Pod a/b", "spec.priority", "too large")
    assert str(error) == "Pod a/b: spec.priority: too large"
