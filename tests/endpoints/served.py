"""Endpoints that run over TLS, and a client of them; the API server behind them is a small one."""

from __future__ import annotations

import http.client
import ssl
from types import SimpleNamespace
from typing import Any

import msgspec

from moorage.api.errors import NotSent
from moorage.api.resources import Unstructured
from moorage.app.clock import SystemClock
from moorage.endpoints.answers import ConfigurationProblems, PastConfiguration
from moorage.endpoints.debugging import Debugging
from moorage.endpoints.health import PING, Check, Health, ProcessView, application
from moorage.endpoints.loop_bridge import NotNow
from moorage.serving.access import ACCESS_REVIEWS, TOKEN_REVIEWS, Authenticator, Authorizer, Guard
from moorage.serving.certificates import ServingCertificate
from moorage.serving.server import ServingThread

SECRET = ("/metrics", "/metrics/resources", "/metrics/slis", "/configz", "/flagz", "/statusz")
VIEWS = ("records", "queue", "attempts", "attempt", "nodes", "node", "summary", "snapshot")


class Reviews:
    """An API server that knows four tokens: of a scraper, of a reader of records, of a stranger, and of an
    administrator."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    async def create(self, resource: Any, obj: Unstructured, **options: Any) -> Unstructured:
        if self.away:
            raise NotSent("connection refused")
        self.asked.append(resource.kind)
        spec = obj.raw["spec"]
        if resource == TOKEN_REVIEWS:
            known = {f"{name}-token": name for name in ("scraper", "reader", "stranger", "admin")}
            name = known.get(spec["token"])
            groups = ["system:masters"] if name == "admin" else ["system:authenticated"]
            user = {"username": name, "groups": groups}
            return answer(obj, {"authenticated": True, "user": user} if name else {"authenticated": False})
        assert resource == ACCESS_REVIEWS
        if spec["nonResourceAttributes"]["verb"] != "get":
            return answer(obj, {"allowed": False})
        readable = {"scraper": SECRET, "reader": ("/configz", "/moorage/v1/records")}
        allowed = spec["nonResourceAttributes"]["path"] in readable.get(spec["user"], ())
        return answer(obj, {"allowed": allowed})


class Sent:
    """Stands for the configurations of a scheduler: takes what begins with `good`."""

    async def answer(self) -> dict[str, Any]:
        return {"generation": 1}

    async def entry(self, number: int) -> dict[str, Any] | str:
        return {"number": number} if number == 1 else "it is not in the history"

    async def check(self, text: str) -> ConfigurationProblems:
        return ConfigurationProblems(error="" if text.startswith("good") else "bad", problems=["checked"])

    async def apply(self, text: str) -> PastConfiguration:
        error = "" if text.startswith("good") else "bad"
        return PastConfiguration(number=2, time=0.0, origin="request", generation=2, error=error, needs_restart=())


def answer(obj: Unstructured, status: dict[str, Any]) -> Unstructured:
    return Unstructured({**obj.raw, "status": status})


class Served:
    """Running endpoints and a client of them."""

    def __init__(
        self,
        certificate: ServingCertificate | None = None,
        always_allow: tuple[str, ...] | None = None,
        writable: tuple[tuple[str, str], ...] = (),
        debugging: Debugging | None = None,
    ) -> None:
        self.reviews = Reviews()
        self.writable = writable
        self.sick = ""
        self.blocked = False
        self.certificate = certificate or ServingCertificate()
        self.allow = always_allow if always_allow is not None else ("/healthz", "/readyz", "/livez")
        health = Health({"healthz": (PING, Check("sick", lambda: self.sick)), "livez": (PING,), "readyz": (PING,)})
        views: Any = SimpleNamespace(**dict.fromkeys(VIEWS, self._echo))
        configuration: Any = Sent()
        self.process = ProcessView(
            health=health,
            metrics=self._text(b"# nothing\n"),
            resource_metrics=self._text(b""),
            slis=lambda: b"",
            config=lambda: {"componentconfig": {"kind": "KubeSchedulerConfiguration"}},
            flags={"secure-port": "0"},
            status=lambda: {"Leads": "no"},
            views=views,
            configuration=configuration,
            debugging=debugging,
        )
        self.thread = ServingThread("127.0.0.1", 0, self.certificate.context, self._make_app)
        self.thread.start()

    def _text(self, text: bytes) -> Any:
        async def give() -> bytes:
            return text

        return give

    async def _echo(self, query: msgspec.Struct, **path: Any) -> dict[str, Any] | str:
        """Stands for every view: says what it was asked."""
        if self.blocked:
            raise NotNow("the scheduling loop did not answer in time; try again")
        return "there is no node 'gone'" if path == {"name": "gone"} else msgspec.structs.asdict(query) | path

    async def _make_app(self) -> Guard:
        clock, client = SystemClock(), self.reviews
        return Guard(
            application(self.process),
            authenticator=Authenticator(client, clock, 10.0),  # type: ignore[arg-type]
            authorizer=Authorizer(client, clock, 10.0, 10.0),  # type: ignore[arg-type]
            always_allow=self.allow,
            writable=self.writable,
        )

    def ask(
        self,
        path: str,
        token: str = "",
        *,
        method: str = "GET",
        body: bytes | None = None,
        client: ssl.SSLContext | None = None,
        content_type: str = "",
    ) -> tuple[int, str]:
        context = client or ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.thread.port, timeout=10, context=context)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            headers |= {"Content-Type": content_type} if content_type else {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()
