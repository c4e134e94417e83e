"""Compare the requests of a pod, and of the pods nominated before it, with its quota: now, or after the changes of a
dry run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.contrib.capacity_scheduling.account import Account
from moorage.contrib.capacity_scheduling.quotas import Amounts, Quota, QuotaLevel, add
from moorage.framework.handle import Handle


class Claim(NamedTuple):
    path: tuple[QuotaLevel, ...]
    """The levels that the pod counts on, from its own up to the root."""
    asked: tuple[Amounts, ...]
    """Of each of them: the pod, and nominated pods below it: those of the same namespace with equal or higher
    priority, those of others that stay within their min."""
    settled: set[str]
    """UIDs of nominated pods with a quota, and of pods that make way for them. Their coming and going is a
    part of the claim, so it changes nothing in a dry run."""

    def is_within(self, number: int) -> bool:
        """Return whether a level of the path stays within its guaranteed amount."""
        return not self.path[number].over_min_with(self.asked[number])


def claim_of(pod: Pod, account: Account, handle: Handle) -> Claim:
    path, settled = account.path(pod.namespace), account.promised(pod)
    requests = pod_requests(pod)
    asked = [dict(requests) for _ in path]
    for name in handle.nominator.nodes():
        for other in handle.nominator.nominated_on(name):
            theirs = account.path(other.namespace)
            if not theirs or other.uid == pod.uid or handle.node(name) is None:
                continue
            settled.add(other.uid)
            own = other.namespace == pod.namespace
            if other.priority >= pod.priority if own else not theirs[0].over_min({}):
                for level, amounts in zip(path, asked, strict=True):
                    if level in theirs:
                        add(amounts, account.outstanding(other, level))
    return Claim(path, tuple(asked), settled)


class Shortage(NamedTuple):
    """A resource of which more is requested than a limit leaves."""

    limit: str
    resource: str
    asked: int
    free: int


class QuotaState:
    """The requests of one pod in an attempt, and the changes of a dry run. Kept in the cycle state."""

    def __init__(self, account: Account, claim: Claim) -> None:
        self._account, self._claim = account, claim
        self._changes: list[dict[str, int]] = [{} for _ in claim.path]
        """Of what is used, by level."""

    def clone(self) -> QuotaState:
        copy = QuotaState(self._account, self._claim)
        copy._changes = [dict(change) for change in self._changes]
        return copy

    def change(self, pod: Pod, sign: int) -> None:
        """Count that a pod was added (1) or removed (-1)."""
        theirs = self._account.path(pod.namespace)
        if not theirs or pod.uid in self._claim.settled:
            return
        amounts = self._account.requests(pod)
        for level, change in zip(self._claim.path, self._changes, strict=True):
            if level in theirs:
                add(change, amounts, sign)

    @property
    def over_max(self) -> Quota | None:
        """Return the quota, the pod's own or one above it, that would exceed its max."""
        for level, asked, change in zip(self._claim.path, self._claim.asked, self._changes, strict=True):
            if isinstance(level, Quota) and level.over_max_with(asked, change):
                return level
        return None

    def max_needed(self, quota: Quota) -> dict[str, int]:
        """Return the amounts that the max of this quota would need, of the resources that exceed it."""
        number = self._claim.path.index(quota)
        asked, change = self._claim.asked[number], self._changes[number]
        needed = {n: quota.used.get(n, 0) + change.get(n, 0) + asked.get(n, 0) for n in quota.max}
        return {name: amount for name, amount in needed.items() if amount > quota.max[name]}

    @property
    def over_sum_of_min(self) -> bool:
        return self._claim.path[-1].exhausted_with(self._claim.asked[-1], self._changes[-1])

    def shortages(self) -> Iterator[Shortage]:
        """Return the resources of which less is free than requested."""
        for level, asked, change in zip(self._claim.path, self._claim.asked, self._changes, strict=True):
            if isinstance(level, Quota):
                yield from _short(f"max of ElasticQuota {level.key}", level.max, level, asked, change)
        root, asked, change = self._claim.path[-1], self._claim.asked[-1], self._changes[-1]
        limits = {name: root.min.get(name, 0) for name in root.used.keys() | asked.keys()}
        yield from _short("the sum of min of all ElasticQuotas", limits, root, asked, change)


def _short(limit: str, limits: Amounts, level: QuotaLevel, asked: Amounts, change: Amounts) -> Iterator[Shortage]:
    for name, most in sorted(limits.items()):
        free = most - level.used.get(name, 0) - change.get(name, 0)
        if asked.get(name, 0) > free:
            yield Shortage(limit, name, asked.get(name, 0), free)
