"""The LeaseCandidate of this replica, for coordinated leader election (KEP-4355).

The API server chooses the leader among the LeaseCandidates that name a Lease, and writes the leader's identity
into the Lease. Before an election it sets `pingTime`; a candidate answers by setting `renewTime`. Follows
tools/leaderelection/leasecandidate.go of client-go.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from moorage.api.errors import AlreadyExists, Conflict, MoorageError
from moorage.api.resources import Unstructured, custom
from moorage.api.times import format_time, parse_time
from moorage.framework.ports import DELETED, MODIFIED, ApiClient, Clock
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle

_log = logs.get(__name__)

LEASE_CANDIDATES = custom("coordination.k8s.io", "v1beta1", "leasecandidates", "LeaseCandidate")
STRATEGY = "OldestEmulationVersion"
"""The API server chooses the candidate with the lowest version, then the oldest one."""
RENEW_SECONDS = 300.0
"""Time between two renewals without a ping. The API server deletes candidates that are not renewed for 30 minutes."""
RETRY_SECONDS = 1.0
"""Time between two tries. The API server waits five seconds for the answer to a ping."""


class Candidacy:
    """Keeps the LeaseCandidate of one replica."""

    def __init__(
        self, client: ApiClient, clock: Clock, *, identity: str, lease: str, namespace: str, version: str
    ) -> None:
        """`version` is the Kubernetes version that this replica follows, as a semantic version."""
        self._client = client
        self._clock = clock
        self._identity = identity
        self._lease = lease
        self._namespace = namespace
        self._version = version
        self._complaints = Throttle(clock.now)

    async def run(self) -> None:
        """Create the LeaseCandidate and answer pings until cancelled."""
        while True:
            try:
                async with asyncio.timeout(RENEW_SECONDS):
                    await self._follow()
            except TimeoutError:
                continue  # the next round renews it
            except MoorageError as error:
                if self._complaints.admits():
                    _log.warning("Cannot keep the LeaseCandidate of this replica", err=str(error))
            await self._clock.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        """Create or renew the object, then answer pings until the watch ends or the object is deleted."""
        namespace, own = self._namespace, f"metadata.name={self._identity}"
        listed = await self._client.list(LEASE_CANDIDATES, namespace=namespace, field_selector=own)
        if listed.items:
            await self._renew(listed.items[0])
        else:
            await self._create()
        version = listed.resource_version
        async for event in self._client.watch(
            LEASE_CANDIDATES, resource_version=version, namespace=namespace, field_selector=own
        ):
            if event.type == DELETED:
                return
            if event.type == MODIFIED and is_pinged(event.object):
                await self._renew(event.object)

    async def _create(self) -> None:
        spec = {
            "leaseName": self._lease,
            "renewTime": self._moment(),
            "binaryVersion": self._version,
            "emulationVersion": self._version,
            "strategy": STRATEGY,
        }
        meta = {"name": self._identity, "namespace": self._namespace}
        raw = {
            "apiVersion": LEASE_CANDIDATES.api_version,
            "kind": LEASE_CANDIDATES.kind,
            "metadata": meta,
            "spec": spec,
        }
        try:
            await self._client.create(LEASE_CANDIDATES, Unstructured(raw))
            _log.info(2, "Created the LeaseCandidate of this replica", candidate=self._identity, lease=self._lease)
        except AlreadyExists:
            pass  # the watch shows it

    async def _renew(self, found: Unstructured) -> None:
        raw: dict[str, Any] = found.raw
        renewed = {**raw, "spec": {**raw.get("spec", {}), "renewTime": self._moment()}}
        with suppress(Conflict):  # a newer version is on its way, with its own ping
            await self._client.replace(LEASE_CANDIDATES, Unstructured(renewed))

    def _moment(self) -> str:
        return format_time(self._clock.wall(), micro=True)


def is_pinged(found: Unstructured) -> bool:
    """Return whether the API server waits for an answer of this candidate."""
    pinged, renewed = (parse_time(found.get("spec", name)) for name in ("pingTime", "renewTime"))
    return pinged is not None and (renewed is None or pinged > renewed)
