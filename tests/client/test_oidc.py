"""ID tokens of kubeconfigs against an identity provider on loopback, over TLS."""

import asyncio
import base64
import json
import ssl

import pytest
from aiohttp import web

from moorage.client import auth_plugins
from tests.client.certificates import Authority

NOW = 1_800_000_000.0


def token(end: float | None = None) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": end} if end else {}).encode()).decode().rstrip("=")
    return f"header.{claims}.signature"


class Provider:
    """Answers a refresh token with a new ID token; `asked` holds the forms that it got."""

    def __init__(self, tmp_path, answer=None) -> None:
        self.authority = Authority()
        self.asked: list[dict[str, object]] = []
        self._answer = answer if answer is not None else {"id_token": token(NOW + 3600)}
        pair = self.authority.server("localhost")
        (tmp_path / "idp.crt").write_bytes(pair.certificate)
        (tmp_path / "idp.key").write_bytes(pair.key)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(tmp_path / "idp.crt", tmp_path / "idp.key")

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discover)
        app.router.add_post("/token", self._renew)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        port = self._runner.addresses[0][1]
        self._issuer = f"https://localhost:{port}"
        return self._issuer

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _discover(self, request: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"{self._issuer}/token"})

    async def _renew(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.asked.append({**form, "authorization": request.headers["Authorization"]})
        return web.json_response(self._answer)


def renew(provider, trusted=True, **config):
    async def main():
        async with provider as issuer:
            known = {"idp-issuer-url": issuer, "client-id": "kube", "client-secret": "s", "refresh-token": "r"}
            if trusted:
                known["idp-certificate-authority-data"] = base64.b64encode(provider.authority.pem).decode()
            return await auth_plugins.id_token({**known, **config}, NOW, 10.0)

    return asyncio.run(main())


@pytest.mark.parametrize("end", [None, NOW + auth_plugins.EARLY_SECONDS + 1])
def test_a_valid_token_is_taken_without_asking(tmp_path, end):
    provider = Provider(tmp_path)
    assert renew(provider, **{"id-token": token(end)}) == (token(end), end)
    assert provider.asked == []


@pytest.mark.parametrize("old", ["", token(NOW + auth_plugins.EARLY_SECONDS - 1)])
def test_a_token_that_ends_is_renewed(tmp_path, old):
    provider = Provider(tmp_path)
    assert renew(provider, **{"id-token": old}) == (token(NOW + 3600), NOW + 3600)
    secret = base64.b64encode(b"kube:s").decode()
    assert provider.asked == [
        {"grant_type": "refresh_token", "refresh_token": "r", "client_id": "kube", "authorization": f"Basic {secret}"}
    ]


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        (None, {"trusted": False}, "certificate verify failed"),
        ({}, {}, "did not return an id_token"),
        ([], {}, "did not return an id_token"),
        ({"id_token": "x"}, {}, "not a JSON Web Token"),
        (None, {"refresh-token": ""}, "refresh-token is missing"),
        (None, {"idp-certificate-authority-data": "?"}, "did not return an id_token"),
    ],
)
def test_errors_are_reported(tmp_path, answer, options, message):
    with pytest.raises(auth_plugins.OidcError, match=message):
        renew(Provider(tmp_path, answer), **options)
