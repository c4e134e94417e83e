"""Tokens of service accounts: made on request, and recognised again as long as the server runs.

They are JSON web tokens signed with a secret of this server (HS256), so nothing has to be stored for them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import msgspec

from mooring.api import resources
from mooring.api.meta import Int64, Record
from mooring.embedded import refusals
from mooring.embedded.http import Answer, User, json_answer
from mooring.embedded.serving.calls import Call, convert
from mooring.embedded.timestamps import timestamp

_ISSUER = "https://kubernetes.default.svc.cluster.local"
_SHORTEST, _DEFAULT, _LONGEST = 600, 3600, 2**32
_LONGEST_TOKEN = 4096


class TokenRequestSpec(Record):
    audiences: tuple[str, ...] = ()
    expiration_seconds: Int64 | None = None


class TokenRequest(Record):
    """authentication.k8s.io/v1 TokenRequest, as far as it is read."""

    spec: TokenRequestSpec = TokenRequestSpec()


class _Claims(msgspec.Struct):
    sub: str
    exp: float


class Signer:
    """Makes and reads tokens. `wall` gives Unix seconds."""

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
        head = _text({"alg": "HS256", "typ": "JWT"})
        signed = f"{head}.{_text(claims)}"
        return f"{signed}.{self._signature(signed)}"

    def user(self, token: str) -> User | None:
        """The service account of a token that is ours and not expired."""
        signed, dot, signature = token.rpartition(".")
        if not dot or len(token) > _LONGEST_TOKEN or not token.isascii():
            return None
        if not hmac.compare_digest(self._signature(signed), signature):
            return None
        try:
            claims = msgspec.json.decode(_bytes(signed.partition(".")[2]), type=_Claims)
        except (msgspec.DecodeError, binascii.Error, ValueError):
            return None
        if claims.exp < self._wall():
            return None
        namespace = claims.sub.split(":")[2]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(claims.sub, groups)

    def create(self, call: Call) -> Answer:
        """POST serviceaccounts/<name>/token."""
        account = call.current()
        raw = call.read_object()
        spec = convert(raw, TokenRequest, "TokenRequest").spec
        seconds = spec.expiration_seconds if spec.expiration_seconds is not None else _DEFAULT
        if not _SHORTEST <= seconds <= _LONGEST:
            why = "may not specify a duration less than 10 minutes" if seconds < _SHORTEST else "is too long"
            problem = f"Invalid value: {seconds}: {why}"
            raise refusals.invalid(
                resources.SERVICE_ACCOUNTS, account.name, "spec.expirationSeconds", problem
            )
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

    def _signature(self, signed: str) -> str:
        return _base64(hmac.new(self._secret, signed.encode(), hashlib.sha256).digest())


def _text(value: dict[str, Any]) -> str:
    return _base64(msgspec.json.encode(value))


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
