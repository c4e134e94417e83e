"""What a pod asks of its quota together with the pods that are nominated before it, and whether there is as
much, now or after pods have come and gone in a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.api.pod import Pod
from mooring.api.requests import pod_requests
from mooring.contrib.capacity_scheduling.quotas import Account, Amounts, Quota, Shortage, add
from mooring.framework.handle import Handle


class Claim(NamedTuple):
    own: Amounts
    """The pod, and nominated pods of its namespace with equal or higher priority."""
    total: Amounts
    """`own`, and nominated pods of other quotas that stay within their min."""
    settled: set[str]
    """UIDs of nominated pods with a quota, and of pods that make way for them. Their coming and going is a
    part of the claim, so it changes nothing in a dry run."""


def claim_of(pod: Pod, account: Account, handle: Handle) -> Claim:
    own, settled = dict(pod_requests(pod)), account.promised(pod)
    total = dict(own)
    for name in handle.nominator.nodes():
        for other in handle.nominator.nominated_on(name):
            quota = account.quotas.get(other.namespace)
            if quota is None or other.uid == pod.uid or handle.node(name) is None:
                continue
            settled.add(other.uid)
            if other.namespace != pod.namespace:
                counts = not quota.over_min({})
            elif counts := other.priority >= pod.priority:
                add(own, account.outstanding(other, pod.namespace))
            if counts:
                add(total, account.outstanding(other))
    return Claim(own, total, settled)


class QuotaState:
    """The claim of one pod in an attempt, and what a dry run has changed. Kept in the cycle state."""

    def __init__(self, account: Account, quota: Quota, claim: Claim) -> None:
        self._account, self.quota, self._claim = account, quota, claim
        self._own: dict[str, int] = {}
        self._total: dict[str, int] = {}
        """Changes of what the own quota, and all together, use."""

    def clone(self) -> QuotaState:
        copy = QuotaState(self._account, self.quota, self._claim)
        copy._own, copy._total = dict(self._own), dict(self._total)
        return copy

    def change(self, pod: Pod, sign: int) -> None:
        """A pod comes (1) or goes (-1)."""
        if pod.namespace not in self._account.quotas or pod.uid in self._claim.settled:
            return
        amounts = self._account.requests(pod)
        add(self._total, amounts, sign)
        if pod.namespace == self.quota.namespace:
            add(self._own, amounts, sign)

    def beyond_max(self) -> Iterator[Shortage]:
        """Where the quota would be exceeded."""
        return self.quota.beyond_max(self._claim.own, self._own)

    def beyond_sum_of_min(self) -> Iterator[Shortage]:
        """Where all quotas together would be."""
        return self._account.all_beyond_min(self._claim.total, self._total)
