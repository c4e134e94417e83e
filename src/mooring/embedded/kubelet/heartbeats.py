"""Leases of all nodes, renewed in turn by one task.

Each node's lease is renewed every `interval` seconds: ten, or longer where so many nodes would together renew
more often than the settings allow. The lease says how long it is good for, and grows with the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from mooring.api.errors import AlreadyExists, MooringError, NotFound
from mooring.api.times import format_time
from mooring.embedded.controllers import kinds
from mooring.embedded.kubelet.settings import KubeletSettings
from mooring.framework.ports import ApiClient, Clock, PatchType
from mooring.telemetry import logs

log = logs.get(__name__)

NAMESPACE = "kube-node-lease"
_TICK = 0.5
"""Seconds between two rounds; each renews what is due."""


class Heartbeats:
    """The leases. `uid_of` gives the UID of a node that lives, and nothing for others."""

    def __init__(
        self, client: ApiClient, clock: Clock, settings: KubeletSettings, uid_of: Callable[[str], str | None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._uid_of = uid_of
        self._renewed: dict[str, float] = {}
        """Node → when last renewed, the longest ago first."""
        self._known: dict[str, str] = {}
        """Node → UID for which a lease is known to exist."""

    @property
    def interval(self) -> float:
        return max(
            self._settings.heartbeat_seconds, len(self._renewed) / self._settings.heartbeats_per_second
        )

    @property
    def duration(self) -> int:
        """leaseDurationSeconds."""
        return max(self._settings.lease_seconds, int(self.interval * 4))

    def add(self, node: str) -> None:
        """Renews it soon, before those that were renewed already."""
        if node not in self._renewed:
            self._renewed = {node: -1e9, **self._renewed} if len(self._renewed) < 64 else self._renewed
            self._renewed.setdefault(node, -1e9)

    def remove(self, node: str) -> None:
        self._renewed.pop(node, None)
        self._known.pop(node, None)

    async def run(self) -> None:
        """Renews until cancelled."""
        while True:
            await self.renew_due()
            await self._clock.sleep(_TICK)

    async def renew_due(self) -> None:
        limit = self._clock.now() - self.interval
        due = [node for node, at in self._renewed.items() if at <= limit]
        # No more than a round's share at once, or a restart would renew everybody in the same instant.
        share = max(8, int(self._settings.heartbeats_per_second * _TICK * 2))
        for node in due[:share]:
            await self._renew(node)

    async def _renew(self, node: str) -> None:
        uid = self._uid_of(node)
        if node not in self._renewed:
            return
        del self._renewed[node]
        self._renewed[node] = self._clock.now()
        if uid is None:
            return  # dead, or not ours to keep alive
        try:
            await self._write(node, uid)
        except MooringError as error:
            log.info(3, "Lease was not renewed", node=node, err=error)

    async def _write(self, node: str, uid: str) -> None:
        now = format_time(self._clock.wall(), micro=True)
        spec = {"renewTime": now, "leaseDurationSeconds": self.duration, "holderIdentity": node}
        if self._known.get(node) == uid:
            try:
                await self._client.patch(
                    kinds.LEASES, node, {"spec": spec}, namespace=NAMESPACE, patch_type=PatchType.MERGE
                )
                return
            except NotFound:
                del self._known[node]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        meta = {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]}
        with suppress(AlreadyExists):
            await self._client.create(kinds.LEASES, {"metadata": meta, "spec": spec})
            self._known[node] = uid
            return
        patch = {"metadata": {"ownerReferences": [owner]}, "spec": spec}
        await self._client.patch(kinds.LEASES, node, patch, namespace=NAMESPACE, patch_type=PatchType.MERGE)
        self._known[node] = uid
