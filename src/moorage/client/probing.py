"""Asks the API server for its version now and then, with a list of one pod, and draws two conclusions.

A version that is lower than one seen before proves that the server has lost the newest part of its history, as after
etcd was restored from a backup. Watches do not show it: kube-apiserver accepts a watch from a version that it has yet
to reach and sends nothing until then (storage/cacher/cache_watcher.go). kube-scheduler has no such probe and must be
restarted.

An answer while informers wait to reach the server again proves that it is back, so they need not wait any longer. One
small request every RETRY_SECONDS is much less than all informers retrying at that rate.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from moorage.api.errors import MoorageError
from moorage.api.meta import Object
from moorage.api.resources import PODS
from moorage.client.informers import InformerSet
from moorage.client.lists import is_older
from moorage.framework.ports import ApiClient, Clock
from moorage.telemetry import logs

log = logs.get(__name__)

PROBE_SECONDS = 20.0
RETRY_SECONDS = 1.5
"""Between two probes while an informer cannot reach the server."""
PATIENCE = 5.0
"""Seconds for one probe."""
_METADATA = replace(PODS, type=Object)


class ServerProbe:
    """Runs beside the informers."""

    def __init__(self, client: ApiClient, informers: InformerSet, clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._seen = ""
        """The version of the last probe."""

    async def run(self) -> None:
        """Run until cancelled."""
        due = self._clock.now() + PROBE_SECONDS
        while True:
            await self._clock.sleep(RETRY_SECONDS)
            if self._clock.now() < due and not self._informers.is_cut_off:
                continue
            due = self._clock.now() + PROBE_SECONDS
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._probe()
            except (MoorageError, TimeoutError) as error:
                # The informers report a server that does not answer.
                log.info(3, "Cannot read the server's version", err=str(error) or "no answer in time")

    async def _probe(self) -> None:
        pods = self._informers.informers.get(PODS)
        followed = pods.status().version if pods is not None else ""
        probed = self._seen
        answer = await self._client.list(_METADATA, resource_version="", limit=1)
        found = self._seen = answer.resource_version
        self._informers.wake()
        seen = probed if is_older(followed, probed) or not followed else followed
        if is_older(found, seen):
            self._informers.rewound(PODS, seen, found)
