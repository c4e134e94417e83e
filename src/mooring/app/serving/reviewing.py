"""Who asks, and may they: both questions are passed on to the API server and the answers kept for a while.

A token is judged by a TokenReview, a user by a SubjectAccessReview. When the API server cannot be asked
nobody gets in: there is no anonymous access to fall back to.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mooring.api.errors import MooringError
from mooring.api.resources import Resource, Unstructured
from mooring.framework.ports import ApiClient, Clock
from mooring.telemetry import logs
from mooring.telemetry.logs import Throttle

_log = logs.get(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, Unstructured)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, Unstructured
)
MASTERS = "system:masters"
CACHE_SIZE = 1024
MAX_TOKEN = 16 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody whom the API server, or a certificate that it trusts, vouches for."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class CannotAsk(MooringError):
    """The API server gave no answer; nobody can be let in meanwhile."""


@dataclass(slots=True)
class Kept(Generic[T]):
    """Answers with a time to live, the newest CACHE_SIZE of them."""

    clock: Clock
    _answers: OrderedDict[str, tuple[float, T]] = field(default_factory=OrderedDict)

    def get(self, key: str) -> T | None:
        found = self._answers.get(key)
        if found is None or found[0] <= self.clock.now():
            return None
        return found[1]

    def put(self, key: str, answer: T, seconds: float) -> None:
        self._answers.pop(key, None)
        if seconds > 0:
            self._answers[key] = (self.clock.now() + seconds, answer)
        while len(self._answers) > CACHE_SIZE:
            self._answers.popitem(last=False)


class Authenticator:
    """Tokens → identities."""

    def __init__(self, client: ApiClient, clock: Clock, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._kept: Kept[tuple[Identity | None]] = Kept(clock)
        self._complaints = Throttle(clock.now)

    async def identify(self, token: str) -> Identity | None:
        """Whose token it is; None: nobody's. CannotAsk when there is no answer."""
        if not token or len(token) > MAX_TOKEN:
            return None
        key = hashlib.sha256(token.encode()).hexdigest()
        if (known := self._kept.get(key)) is not None:
            return known[0]
        answer = await _ask(self._client, TOKEN_REVIEWS, {"token": token}, self._complaints)
        found = _identity(answer.get("status", default={}))
        self._kept.put(key, (found,), self._seconds)
        return found


class Authorizer:
    """Identities and requests → yes or no."""

    def __init__(self, client: ApiClient, clock: Clock, allow_seconds: float, deny_seconds: float) -> None:
        self._client = client
        self._allow_seconds = allow_seconds
        self._deny_seconds = deny_seconds
        self._kept: Kept[bool] = Kept(clock)
        self._complaints = Throttle(clock.now)

    async def allows(self, who: Identity, verb: str, path: str) -> bool:
        """CannotAsk when there is no answer."""
        if MASTERS in who.groups:
            return True
        key = repr((who, verb, path))
        if (known := self._kept.get(key)) is not None:
            return known
        spec: dict[str, Any] = {
            "user": who.name,
            "groups": list(who.groups),
            "nonResourceAttributes": {"path": path, "verb": verb},
            **({"uid": who.uid} if who.uid else {}),
            **({"extra": {name: list(values) for name, values in who.extra}} if who.extra else {}),
        }
        answer = await _ask(self._client, ACCESS_REVIEWS, spec, self._complaints)
        allowed = answer.get("status", "allowed") is True and answer.get("status", "denied") is not True
        self._kept.put(key, allowed, self._allow_seconds if allowed else self._deny_seconds)
        return allowed


async def _ask(
    client: ApiClient, resource: Resource, spec: dict[str, Any], complaints: Throttle
) -> Unstructured:
    review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
    try:
        answer = await client.create(resource, Unstructured(review))
    except MooringError as error:
        if complaints.admits():
            _log.error("The API server cannot be asked about a request", error, review=resource.kind)
        raise CannotAsk(f"no answer to a {resource.kind}") from error
    if not isinstance(answer, Unstructured):
        raise CannotAsk(f"an answer to a {resource.kind} that is none")
    return answer


def _identity(status: Any) -> Identity | None:
    if not isinstance(status, dict) or status.get("authenticated") is not True:
        return None
    user = status.get("user")
    if not isinstance(user, dict) or not isinstance(user.get("username"), str) or not user["username"]:
        return None
    extra = user.get("extra") or {}
    return Identity(
        user["username"],
        tuple(str(group) for group in user.get("groups") or ()),
        str(user.get("uid") or ""),
        tuple(sorted((str(name), tuple(map(str, values))) for name, values in extra.items())),
    )
