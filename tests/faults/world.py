"""The real scheduler on the real HTTP client and the embedded API server, no sockets, in virtual time."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import NAMESPACES, NODES, Resource
from moorage.app.scheduler import Scheduler
from moorage.client.http_client import HttpClient
from moorage.client.informers import InformerStatus
from moorage.client.pacing import RateLimits
from moorage.client.transport import HttpRequest
from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.apiserver.authentication import ApiGuard, TokenSigner
from moorage.embedded.builtin import built_in_catalog
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing.cluster import Cluster
from tests.embedded.in_process import AsgiTransport
from tests.embedded.wire_faults import Effect, Sent, WireFault, WireFaults

TOKEN, HOST = "test-token", "127.0.0.1:6443"


class HttpCluster(Cluster):
    """A `Cluster` whose scheduler speaks HTTP. `wire` is where bytes go wrong."""

    def __init__(
        self,
        *,
        streaming: bool = True,
        qps: float = 5000.0,
        burst: int = 5000,
        metrics: SchedulerMetrics | None = None,
        probe_server: bool = False,
        **options: Any,
    ) -> None:
        self.wire = WireFaults(random.Random(options.get("seed", 0)))
        self._streaming = streaming
        self._rate = qps, burst
        self._more = {"metrics": metrics, "probe_server": probe_server}
        super().__init__(**options)

    def _make_scheduler(self) -> Scheduler:
        self.transport = self._serve()
        self.http = HttpClient(
            self.transport,
            self.clock,
            random.Random(self.seed),
            limits=RateLimits(self.clock, *self._rate),
            user_agent="moorage/test",
        )
        return Scheduler(
            self.http,
            clock=self.clock,
            random=self.random,
            instance="test",
            streaming_lists=self._streaming,
            **{**self._options, **self._more},
        )

    def _serve(self) -> AsgiTransport:
        signer = TokenSigner(b"secret" * 6, self.clock.wall)
        guard = ApiGuard(TOKEN, signer, {HOST})
        if not self.store.list(NAMESPACES).items:
            self.store.create(NAMESPACES, {"metadata": {"name": "default"}})
        self.catalog = built_in_catalog()
        endpoints = self._endpoints()
        app = ApiServer(self.store, self.catalog, self.clock, guard=guard, signer=signer, endpoints=endpoints)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return AsgiTransport(app, self.clock, headers=headers, host=HOST, faults=self.wire)

    def _endpoints(self) -> tuple[Any, ...]:
        """What the API server answers beside objects."""
        return ()

    def __enter__(self) -> HttpCluster:
        return self

    def spoil(self, effect: Effect, **which: Any) -> WireFault:
        """Hits the requests that fit with an effect; see WireFault."""
        return self.wire.add(WireFault(effect, **which))

    def sent(self, method: str = "", path: str = "", watch: bool | None = None, since: float = 0.0) -> list[Sent]:
        fault = WireFault(Effect(), method=method, path=path, watch=watch)
        return [sent for sent in self.wire.log if sent.time >= since and fault.fits(sent.request)]

    def binds(self) -> list[Sent]:
        return self.sent("POST", "/binding")

    def informer(self, resource: Resource) -> InformerStatus:
        return self.scheduler.informers.informers[resource].status()

    def assumed(self) -> list[str]:
        return [cached.pod.key for cached in self.scheduler.engine.cache.assumed()]

    def accounted(self) -> dict[str, list[str]]:
        """Node → pods as the scheduler counts them."""
        cache = self.scheduler.engine.cache
        names = [str(stored.raw["metadata"]["name"]) for stored in self.store.list(NODES).items]
        return {name: sorted(pod.key for pod in cache.pods_on(name)) for name in names}

    def the(self, name: str) -> Pod:
        """The pod of that name, which must exist."""
        found = self.pod(name)
        assert found is not None, f"pod {name} is gone"
        return found

    def reasons(self, name: str) -> list[str]:
        """Reasons of the events about a pod, oldest first."""
        return [event.reason for event in self.events(name)]

    def check(self) -> None:
        """Cache and queue agree with themselves, and the cache with the API."""
        self.validate()
        counted = Counter(key for keys in self.accounted().values() for key in keys)
        assert all(count == 1 for count in counted.values()), counted
        expected = {pod.key for pod in self.pods() if pod.spec.node_name and not pod.is_terminal}
        assert set(counted) - set(self.assumed()) == expected


def is_watch_of(plural: str) -> dict[str, Any]:
    """For `spoil`: watches of one kind."""
    return {"path": lambda path: path.endswith(f"/{plural}"), "watch": True}


def is_list_of(plural: str) -> dict[str, Any]:
    return {"path": lambda path: path.endswith(f"/{plural}"), "watch": False, "method": "GET"}


def version_of(request: HttpRequest) -> str:
    return request.query.get("resourceVersion", "")
