"""Authenticate requests by Host and Origin, and by token or client certificate.

A page in a browser can reach loopback ports under any name that resolves to them. So the Host must be exactly
one of this server's, a foreign Origin is refused, and only health and version need no credentials.

Tokens of service accounts are created on request and are valid while the server runs. They are JSON Web
Tokens signed with a secret of this server (HS256), so the server does not store them.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jwt
from jwt.types import Options

from moorage.api import resources
from moorage.api.errors import ApiError
from moorage.api.meta import Int64, Record
from moorage.embedded.apiserver.calls import ApiCall, convert
from moorage.embedded.http import ADMIN, ANONYMOUS, ServerAnswer, json_answer
from moorage.serving.certificates import User
from moorage.store import refusals
from moorage.store.objects import timestamp

_ISSUER = "https://kubernetes.default.svc.cluster.local"
_MIN_SECONDS, _DEFAULT_SECONDS, _MAX_SECONDS = 600, 3600, 2**32
_MAX_TOKEN = 4096
_ALGORITHM = "HS256"
# PyJWT reads the system clock; expiry is checked by the clock of the server.
_CHECKS: Options = {"verify_aud": False, "verify_exp": False, "verify_iat": False, "require": ["exp", "sub"]}
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_OWN_SITE = frozenset({"same-origin", "none"})
_MAX_HEADERS = 100


class TokenRequestSpec(Record):
    audiences: tuple[str, ...] = ()
    expiration_seconds: Int64 | None = None


class TokenRequest(Record):
    """The fields of an authentication.k8s.io/v1 TokenRequest that the server reads."""

    spec: TokenRequestSpec = TokenRequestSpec()


class TokenSigner:
    """Creates and verifies tokens. `wall` returns Unix seconds; `secret` has at least 32 bytes."""

    def __init__(self, secret: bytes, wall: Callable[[], float]) -> None:
        self._secret = secret
        self._wall = wall

    def token(self, namespace: str, name: str, uid: str, audiences: tuple[str, ...], expires: float) -> str:
        claims: dict[str, Any] = {
            "aud": list(audiences),
            "exp": int(expires),
            "iat": int(self._wall()),
            "iss": _ISSUER,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        return jwt.encode(claims, self._secret, _ALGORITHM)

    def user(self, token: str) -> User | None:
        """Return the service account of a token of this server that has not expired."""
        if len(token) > _MAX_TOKEN:
            return None
        try:
            claims = jwt.decode(token, self._secret, [_ALGORITHM], options=_CHECKS, issuer=_ISSUER)
            if int(claims["exp"]) < self._wall():
                return None
        except (jwt.InvalidTokenError, ValueError, TypeError, RecursionError):
            return None
        subject = str(claims["sub"])
        namespace = subject.split(":")[2]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(subject, groups)

    def create(self, call: ApiCall) -> ServerAnswer:
        """POST serviceaccounts/<name>/token."""
        account = call.current()
        raw = call.read_object()
        spec = convert(raw, TokenRequest, "TokenRequest").spec
        seconds = spec.expiration_seconds if spec.expiration_seconds is not None else _DEFAULT_SECONDS
        if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
            why = "may not specify a duration less than 10 minutes" if seconds < _MIN_SECONDS else "is too long"
            problem = f"Invalid value: {seconds}: {why}"
            raise refusals.invalid(resources.SERVICE_ACCOUNTS, account.name, "spec.expirationSeconds", problem)
        expires = self._wall() + seconds
        audiences = spec.audiences or (_ISSUER,)
        status = {
            "token": self.token(account.namespace, account.name, account.uid, audiences, expires),
            "expirationTimestamp": timestamp(expires),
        }
        answer = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": account.name, "namespace": account.namespace},
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds, "boundObjectRef": None},
            "status": status,
        }
        return json_answer(answer, 201)


def read_headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return header values by lower-case name. Refuse too many headers, and a repeated Host."""
    if len(raw) > _MAX_HEADERS:
        raise refusals.failure(431, "BadRequest", f"the request has more than {_MAX_HEADERS} headers")
    headers: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("latin-1")
        if key == "host" and key in headers:
            raise refusals.bad_request("the request has more than one Host header")
        headers[key] = value.decode("latin-1")
    return headers


class ApiGuard:
    """Authenticates the requests of one server. `hosts` are the allowed Host headers; None allows any."""

    def __init__(self, token: str, signer: TokenSigner, hosts: Iterable[str] | None = None) -> None:
        self.hosts = None if hosts is None else frozenset(hosts)
        self._token = token.encode()
        self._signer = signer

    def admit(self, method: str, path: str, headers: Mapping[str, str], peer: User | None) -> User:
        """Return the user of a request, or raise an ApiError. `peer` is the user of a client certificate."""
        self._check_host(headers.get("host"))
        self._check_origin(headers)
        user = peer or self._bearer(headers.get("authorization"))
        if user is not None:
            return user
        if path in _OPEN_PATHS and method in ("GET", "HEAD"):
            return ANONYMOUS
        raise refusals.failure(401, "Unauthorized", "Unauthorized")

    def _check_host(self, host: str | None) -> None:
        if not host:
            raise refusals.bad_request("the request has no Host header")
        if self.hosts is not None and host not in self.hosts:
            names = ", ".join(sorted(self.hosts))
            message = f"this server is not called {host[:200]!r}; it answers to {names}"
            raise refusals.failure(421, "MisdirectedRequest", message)

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is None and site is None:
            return
        own = {f"https://{headers['host']}", f"http://{headers['host']}"}
        if (origin is not None and origin not in own) or (site is not None and site not in _OWN_SITE):
            raise _foreign()

    def _bearer(self, authorization: str | None) -> User | None:
        if not authorization:
            return None
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        if hmac.compare_digest(token.encode(), self._token):
            return ADMIN
        return self._signer.user(token)


def _foreign() -> ApiError:
    message = "requests from other sites are refused; use kubectl or a client with the server's token"
    return refusals.failure(403, "Forbidden", message)


def own_hosts(port: int, names: Iterable[str] = ("127.0.0.1", "localhost", "[::1]")) -> frozenset[str]:
    """Return the Host headers of a server on a loopback port. Clients leave out the default port of https."""
    names = tuple(names)
    hosts = {f"{name}:{port}" for name in names}
    return frozenset(hosts | set(names)) if port == 443 else frozenset(hosts)
