"""Who may ask: the Host and Origin of a request, its token or client certificate.

A page in a browser can reach loopback ports, under any name that resolves there. So the Host must be one of
ours exactly, a foreign Origin is refused, and only health and version are answered without credentials.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence

from mooring.api.errors import ApiError
from mooring.embedded.apiserver.tokens import Signer
from mooring.embedded.http import ADMIN, ANONYMOUS
from mooring.serving.certificates import User
from mooring.store import refusals

_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_OWN_SITE = frozenset({"same-origin", "none"})
_MOST_HEADERS = 100


def read_headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Header names in lower case with their values; refuses too many, and a repeated Host."""
    if len(raw) > _MOST_HEADERS:
        raise refusals.failure(431, "BadRequest", f"the request has more than {_MOST_HEADERS} headers")
    headers: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("latin-1")
        if key == "host" and key in headers:
            raise refusals.bad_request("the request has more than one Host header")
        headers[key] = value.decode("latin-1")
    return headers


class Guard:
    """The rules of one server. `hosts` are the allowed Host headers; None allows any, for tests only."""

    def __init__(self, token: str, signer: Signer, hosts: Iterable[str] | None = None) -> None:
        self.hosts = None if hosts is None else frozenset(hosts)
        self._token = token.encode()
        self._signer = signer

    def admit(self, method: str, path: str, headers: Mapping[str, str], peer: User | None) -> User:
        """The user of a request; the ApiError of one that is turned away. `peer` comes from a certificate."""
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
    """The Host headers of a server on a loopback port; clients leave the usual port of https out."""
    names = tuple(names)
    hosts = {f"{name}:{port}" for name in names}
    return frozenset(hosts | set(names)) if port == 443 else frozenset(hosts)
