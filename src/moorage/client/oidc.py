"""ID tokens of the auth-provider `oidc` in a kubeconfig: taken as they are until they end, then renewed with
the refresh token. Nothing is written back: a provider that takes a refresh token once only needs a plugin.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp

EARLY_SECONDS = 300.0
"""A token that ends within this time is renewed."""


class OidcError(Exception):
    """No valid ID token; says what to correct."""


async def id_token(config: Mapping[str, Any], now: float, seconds: float) -> tuple[str, float | None]:
    """A valid token, and the Unix seconds at which it ends, if it says so."""
    token = str(config.get("id-token") or "")
    end = _end(token) if token else None
    if token and (end is None or end - EARLY_SECONDS > now):
        return token, end
    for name in ("refresh-token", "client-id", "idp-issuer-url"):
        if not config.get(name):
            raise OidcError(f"there is no valid id-token, and no {name} to get one; log in again")
    try:
        token = await _renewed(config, seconds)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
        reason = str(error) or type(error).__name__
        raise OidcError(
            f"the issuer {config['idp-issuer-url']} gave no id_token ({reason}); log in again"
        ) from error
    return token, _end(token)


def _end(token: str) -> float | None:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"]) if "exp" in claims else None
    except (IndexError, ValueError, TypeError) as error:
        raise OidcError("the id-token is no JSON Web Token; log in again") from error


async def _renewed(config: Mapping[str, Any], seconds: float) -> str:
    issuer, client = str(config["idp-issuer-url"]).rstrip("/"), str(config["client-id"])
    form = {"grant_type": "refresh_token", "refresh_token": str(config["refresh-token"]), "client_id": client}
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=_trust(config)),
        timeout=aiohttp.ClientTimeout(total=seconds),
        raise_for_status=True,
    ) as session:
        async with session.get(f"{issuer}/.well-known/openid-configuration") as answer:
            endpoint = (await answer.json())["token_endpoint"]
        secret = f"{client}:{config.get('client-secret') or ''}"
        basic = {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
        async with session.post(endpoint, data=form, headers=basic, allow_redirects=False) as answer:
            return str((await answer.json())["id_token"])


def _trust(config: Mapping[str, Any]) -> ssl.SSLContext:
    """The roots of the system unless the provider's own are given."""
    encoded, file = config.get("idp-certificate-authority-data"), config.get("idp-certificate-authority")
    if encoded:
        return ssl.create_default_context(cadata=base64.b64decode(str(encoded)).decode())
    return ssl.create_default_context(cafile=str(file) if file else None)
