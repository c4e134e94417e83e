"""How a Deployment's replicas are shared among its ReplicaSets. Pure: sizes in, sizes out.

A rolling update goes in steps between two limits: never more than replicas + maxSurge pods in all, never
fewer than replicas - maxUnavailable that are available. When the Deployment itself is scaled while several
sets have pods, each grows or shrinks in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mooring.embedded.controllers.templates import resolve


@dataclass(frozen=True, slots=True)
class SetSize:
    """One ReplicaSet, as far as its size matters."""

    name: str
    replicas: int
    available: int
    created: str
    size_then: int = 0
    """The most pods the Deployment allowed when this set was last scaled; 0 when unknown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the Deployment asks for."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Limits:
        wanted = spec.get("replicas")
        replicas = 1 if wanted is None else int(wanted)
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return cls(replicas, 0, 0)
        rolling = strategy.get("rollingUpdate") or {}
        surge = resolve(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = resolve(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1  # as upstream: otherwise nothing could ever happen
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def most(self) -> int:
        return self.replicas + self.surge if self.replicas else 0


def step(limits: Limits, new: SetSize, old: Sequence[SetSize]) -> dict[str, int]:
    """The next sizes of a rolling update, for the sets that change."""
    grown = grow(limits, new, old)
    if grown != new.replicas:
        return {new.name: grown}
    return shrink(limits, new, old)


def grow(limits: Limits, new: SetSize, old: Sequence[SetSize]) -> int:
    """The size of the new set."""
    if new.replicas > limits.replicas:
        return limits.replicas
    room = limits.replicas + limits.surge - new.replicas - sum(one.replicas for one in old)
    return new.replicas + max(0, min(room, limits.replicas - new.replicas))


def shrink(limits: Limits, new: SetSize, old: Sequence[SetSize]) -> dict[str, int]:
    """The sizes of old sets that shrink: first what is not available anyway, then as the new one allows."""
    least = limits.replicas - limits.unavailable
    total = new.replicas + sum(one.replicas for one in old)
    spare = total - least - (new.replicas - new.available)
    if spare <= 0:
        return {}
    ordered = sorted(old, key=lambda one: (one.created, one.name))
    cleaned = []
    for one in ordered:
        gone = min(spare, max(0, one.replicas - one.available))
        spare -= gone
        cleaned.append(replace(one, replicas=one.replicas - gone))
    beyond = new.available + sum(one.available for one in old) - least
    sizes = {}
    for before, one in zip(ordered, cleaned, strict=True):
        gone = max(0, min(one.replicas, beyond))
        beyond -= gone
        if one.replicas - gone != before.replicas:
            sizes[one.name] = one.replicas - gone
    return sizes


def in_proportion(limits: Limits, sets: Sequence[SetSize]) -> dict[str, int]:
    """New sizes when the Deployment is scaled while several sets have pods; the largest gets the rest."""
    to_add = limits.most - sum(one.replicas for one in sets)
    direction = 1 if to_add > 0 else -1
    ordered = sorted(sets, key=lambda one: (one.replicas, one.created), reverse=True)
    if to_add < 0:
        ordered = sorted(sets, key=lambda one: (-one.replicas, one.created))
    sizes = {one.name: one.replicas for one in ordered}
    left = to_add
    for one in ordered:
        if not to_add:
            break
        share = _share(limits, one)
        share = max(0, min(share, left)) if direction > 0 else min(0, max(share, left))
        sizes[one.name] += share
        left -= share
    if ordered and left:
        sizes[ordered[0].name] = max(0, sizes[ordered[0].name] + left)
    return {one.name: sizes[one.name] for one in ordered if sizes[one.name] != one.replicas}


def _share(limits: Limits, one: SetSize) -> int:
    if not limits.replicas:
        return -one.replicas
    then = one.size_then or limits.most
    return round(one.replicas * limits.most / then) - one.replicas
