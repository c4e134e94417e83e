"""The exceptions of Moorage. Rejecting a pod is not an exception but a value: see the framework's Status.

MoorageError
├── ObjectError                 an object has an invalid value; names the object, the field and the remedy
├── QuantityError               a text is not a quantity (also a ValueError)
├── SelectorError               a selector has a bad operator, key or value (also a ValueError)
├── ApiError                    the API server rejected a request; has its Status and the HTTP code
│   ├── BadRequest              400
│   ├── Unauthorized            401
│   ├── Forbidden               403
│   ├── NotFound                404
│   ├── Conflict                409  the object changed, or a precondition failed
│   │   └── AlreadyExists       409  reason AlreadyExists
│   ├── Gone                    410  reason Expired or Gone: list again
│   ├── Invalid                 422
│   ├── TooManyRequests         429  wait for retry_after seconds
│   └── ServerError             5xx
│       ├── ServiceUnavailable  503
│       └── GatewayTimeout      504
└── TransportError              there was no response
    ├── NotSent                 the request was certainly not processed: retrying is safe
    └── OutcomeUnknown          the request was sent, the response is lost: read before writing again
        ├── BadAnswer           the response was not an API server's: a proxy's page, truncated JSON
        └── KeptConnectionLost  a reused idle connection ended before a response arrived
"""

from moorage.api.meta import ApiStatus


class MoorageError(Exception):
    """Base of all exceptions that Moorage raises on purpose."""


class ObjectError(MoorageError):
    """An object has an invalid value. It is skipped until it is corrected."""

    def __init__(self, obj: str, field: str, message: str) -> None:
        super().__init__(f"{obj}: {field}: {message}" if field else f"{obj}: {message}")
        self.object = obj
        self.field = field
        self.message = message


class QuantityError(MoorageError, ValueError):
    """A text is not a quantity."""

    def __init__(self, quantity: object) -> None:
        shown = repr(quantity)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        super().__init__(
            f"{shown} is not a quantity; write ASCII digits with one suffix, such as 500m, 2, 1.5Gi or 1e3"
        )
        self.quantity = quantity


class SelectorError(MoorageError, ValueError):
    """A selector cannot be evaluated. `field` is the path inside the selector, empty for the text form."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.message = message
        self.field = field


class ApiError(MoorageError):
    """The API server responded with a failure."""

    def __init__(self, status: ApiStatus, code: int = 0, retry_after: float | None = None) -> None:
        self.status = status
        self.code = code or status.code
        self.retry_after = retry_after
        super().__init__(_describe(status, self.code))

    @property
    def reason(self) -> str:
        return self.status.reason


class BadRequest(ApiError):
    """400: the server could not read the request."""


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: the credentials do not allow this (RBAC or an admission webhook)."""


class NotFound(ApiError):
    """404: the object, its namespace or the whole resource does not exist."""


class Conflict(ApiError):
    """409: the object has changed, or a precondition does not hold."""


class AlreadyExists(Conflict):
    """409 with reason AlreadyExists: an object of that name exists."""


class Gone(ApiError):
    """410: the resource version or page token is too old; list again."""


class Invalid(ApiError):
    """422: the object is well formed but not valid; the causes name the fields."""


class TooManyRequests(ApiError):
    """429: the server asks the client to slow down, for `retry_after` seconds if given."""


class ServerError(ApiError):
    """5xx: the server failed."""


class ServiceUnavailable(ServerError):
    """503: the server is starting, stopping or overloaded."""


class GatewayTimeout(ServerError):
    """504: the server did not finish in time; a write may have happened."""


class TransportError(MoorageError):
    """The request got no response."""


class NotSent(TransportError):
    """The request was certainly not processed; sending it again is safe."""


class OutcomeUnknown(TransportError):
    """The request was sent but the response is lost; read the object before writing again."""


class BadAnswer(OutcomeUnknown):
    """The response did not come from an API server; whether a write has happened is unknown."""


class KeptConnectionLost(OutcomeUnknown):
    """A reused connection ended before a response arrived.

    Most likely the server had closed it as idle.
    """


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    503: ServiceUnavailable,
    504: GatewayTimeout,
}

# Reasons win over codes: an ERROR event of a watch may have a reason with code 0.
_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Gone,
    "Gone": Gone,
    "Conflict": Conflict,
    "NotFound": NotFound,
    "TooManyRequests": TooManyRequests,
}

_REMEDIES: dict[int, str] = {
    401: "check the token or client certificate",
    403: "grant this right to the user, or see the webhook named above",
    409: "read the object again and repeat the change",
    410: "list again to get a fresh resource version",
    422: "correct the fields named above",
    429: "slow down and try again",
    503: "try again with backoff",
    504: "read the object before trying again; a write may have happened",
}


def from_status(status: ApiStatus, retry_after: float | None = None) -> ApiError:
    """Return the exception for a failed response. `retry_after` in seconds overrides the one in the Status."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if kind is None:
        kind = ServerError if status.code >= 500 else ApiError
    if retry_after is None and status.details is not None and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    return kind(status, retry_after=retry_after)


def _describe(status: ApiStatus, code: int) -> str:
    parts = [f"{code} {status.reason}".strip() + f": {status.message or 'the API server gave no message'}"]
    if status.details is not None:
        parts += [f"{cause.field}: {cause.message}" for cause in status.details.causes if cause.field]
    if code in _REMEDIES:
        parts.append(_REMEDIES[code])
    return "; ".join(parts)
