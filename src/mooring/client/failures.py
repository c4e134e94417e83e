"""What a failed list or watch says about the way back. The steps themselves are in `reflector`."""

from mooring.api.errors import (
    ApiError,
    BadAnswer,
    Forbidden,
    GatewayTimeout,
    Gone,
    MooringError,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)


class ShortWatch(MooringError):
    """A watch or streaming list that ended before it was of any use."""


class Overdue(MooringError):
    """An answer or the end of a watch did not come in time: the other end is probably gone."""


_PASSING = (
    TransportError,
    Overdue,
    TooManyRequests,
    Unauthorized,
    Forbidden,
    ServiceUnavailable,
    GatewayTimeout,
)


def version_lost(error: Exception) -> bool:
    """The server does not have the version that was asked for: compacted away, or from the future."""
    return isinstance(error, Gone) or _is_too_large(error)


def is_passing(error: Exception) -> bool:
    """Says nothing about the version: server away, overloaded, or credentials refused. Everything known is
    kept and the same watch is tried again; a list would only add to the load of a server that comes back."""
    return isinstance(error, _PASSING) and not isinstance(error, BadAnswer)


def is_suspect(error: Exception) -> bool:
    """May pass, or may come from the version itself when it goes on."""
    if isinstance(error, ShortWatch | BadAnswer):
        return True
    return isinstance(error, ServerError) and not is_passing(error)


def describe(error: Exception) -> str:
    """The text for logs and status; errors that nobody foresaw are shown with their type."""
    return str(error) if isinstance(error, MooringError) else f"{type(error).__name__}: {error}"


def _is_too_large(error: Exception) -> bool:
    """A replica that lags behind answers 504 with this cause; old servers only with the words."""
    if not isinstance(error, ApiError):
        return False
    causes = error.status.details.causes if error.status.details else ()
    return any(cause.reason == "ResourceVersionTooLarge" for cause in causes) or (
        "Too large resource version" in error.status.message
    )
