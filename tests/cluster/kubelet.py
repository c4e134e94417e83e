"""The little of a kubelet that tests need: bound pods become Running and Ready, terminating ones go away.

One thread that lists every few tenths of a second. Only for small worlds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from moorage.api.resources import PODS
from tests.cluster.api import STRATEGIC, Api, ApiProblem

PERIOD = 0.2


class StandIn:
    """Runs between `start` and `stop`; `terminating` may say how long a pod takes to go (None: for ever)."""

    def __init__(self, api: Api, *, keep: Callable[[dict[str, Any]], bool] = lambda pod: False) -> None:
        self._api = api
        self._keep = keep
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stand-in kubelet", daemon=True)

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(PERIOD):
            with suppress(OSError, ApiProblem):
                for pod in self._api.list(PODS):
                    self._treat(pod)
        self._api.close()

    def _treat(self, pod: dict[str, Any]) -> None:
        meta, status = pod["metadata"], pod.get("status", {})
        if not pod["spec"].get("nodeName"):
            return
        if meta.get("deletionTimestamp"):
            if not self._keep(pod):
                self._api.delete(PODS, meta["name"], meta["namespace"], now=True)
        elif status.get("phase") == "Pending":
            ready = {"type": "Ready", "status": "True"}
            patch = {"status": {"phase": "Running", "conditions": [ready]}}
            with suppress(ApiProblem):
                self._api.patch(
                    PODS, meta["name"], patch, meta["namespace"], subresource="status", content_type=STRATEGIC
                )
