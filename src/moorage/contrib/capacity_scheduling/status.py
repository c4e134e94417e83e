"""Write `status.used` of ElasticQuota objects, from the account that scheduling uses, and `status.message` if a parent
is invalid. Runs on the leader only. Follows pkg/controllers/elasticquota_controller.go of scheduler-plugins."""

from __future__ import annotations

from moorage.api.errors import MoorageError, NotFound
from moorage.api.requests import CPU, resource_value
from moorage.contrib.capacity_scheduling.account import Account
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS, Quota
from moorage.framework.handle import Handle
from moorage.framework.ports import PatchType

PAUSE = 0.2
"""Seconds in which changes are gathered into one write."""
RETRY = 5.0


class StatusWriter:
    def __init__(self, account: Account, handle: Handle) -> None:
        self._account = account
        self._handle = handle
        self._objects = handle.lister(ELASTICQUOTAS)

    async def run(self) -> None:
        """Write until cancelled. If several profiles run this, the first one writes."""
        account, clock = self._account, self._handle.clock
        while True:
            await account.changed.wait()
            await clock.sleep(PAUSE)
            account.changed.clear()
            stale, account.stale = account.stale, set()
            for namespace in sorted(stale):
                try:
                    await self._write(namespace)
                except MoorageError:
                    clock.call_later(RETRY, account.note, namespace)

    async def _write(self, namespace: str) -> None:
        quota = self._account.quota(namespace)
        if quota is None or (obj := self._objects.get(quota.name, namespace)) is None:
            return
        old, new, message = obj.get("status", "used") or {}, used(quota), obj.get("status", "message") or ""
        counted = old.keys() == new.keys() and all(resource_value(n, old[n]) == a for n, a in new.items())
        if counted and message == quota.remark:
            return
        patch: dict[str, object] = {
            "used": {**dict.fromkeys(old), **{name: text(name, amount) for name, amount in new.items()}}
        }
        if message != quota.remark:
            patch["message"] = quota.remark or None
        try:
            await self._handle.client.patch(
                ELASTICQUOTAS, quota.name, {"status": patch}, namespace=namespace,
                subresource="status", patch_type=PatchType.MERGE,
            )  # fmt: skip
        except NotFound:
            return


def used(quota: Quota) -> dict[str, int]:
    """Return the usage including that of quotas below, with zeros for resources that the quota names and no pod
    uses."""
    named = dict.fromkeys([*quota.min, *quota.max], 0)
    return named | {name: amount for name, amount in quota.used.items() if amount or name in named}


def text(name: str, amount: int) -> str:
    """Return a quantity: `500m`, `2`, `1073741824`."""
    if name != CPU:
        return str(amount)
    return f"{amount}m" if amount % 1000 else str(amount // 1000)
