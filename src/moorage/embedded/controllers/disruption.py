"""The status of PodDisruptionBudgets: how many of their pods may be evicted now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.resources import Unstructured
from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import is_finished, is_ready, is_terminating, with_condition
from moorage.embedded.controllers.ownership import resolve, selector_of
from moorage.embedded.controllers.replica_sets import wanted_replicas

Raw = dict[str, Any]

EVICTION_SECONDS = 120.0
"""After so long an eviction that was granted and not followed by a deletion is forgotten."""
_SCALED = {
    resource.kind: resource
    for resource in (kinds.REPLICA_SETS, kinds.REPLICATION_CONTROLLERS, kinds.STATEFUL_SETS, kinds.DEPLOYMENTS)
}


class DisruptionBudgets(Controller):
    """The controller of PodDisruptionBudgets."""

    name = "controllermanager"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.budgets = self.watch(kinds.BUDGETS, own_key)
        self.pods = self.watch(kinds.PODS, self._budgets_of)
        self.scaled = {kind: self.caches.of(resource) for kind, resource in _SCALED.items()}
        for cache in self.scaled.values():
            cache.handlers.append(self._scaled)

    def _budgets_of(self, pod: Unstructured) -> Iterable[str]:
        there = self.budgets.in_namespace(pod.namespace)
        return [b.key for b in there if selector_matches(b, pod)]

    def _scaled(self, old: Unstructured | None, new: Unstructured | None) -> None:
        """An owner's number of replicas is what percentages are of."""
        if old is not None and new is not None and wanted_replicas(old) == wanted_replicas(new):
            return
        for budget in self.budgets.in_namespace((new or old).namespace):  # type: ignore[union-attr]
            self.queue.add(budget.key)

    async def reconcile(self, key: str) -> float | None:
        budget = self.budgets.get(key)
        if budget is None or is_terminating(budget):
            return None
        pods = [p for p in self.pods.in_namespace(budget.namespace) if selector_matches(budget, p)]
        pods = [p for p in pods if not is_finished(p)]
        wall = self.clock.wall()
        expected, desired, problem = self._expected(budget, pods)
        evicted = _still_evicted(budget, pods, wall)
        healthy = sum(is_ready(p) and not is_terminating(p) and p.name not in evicted for p in pods)
        status = status_of(budget, expected, desired, healthy, evicted, problem, format_time(wall))
        await self.writer.update_status(kinds.BUDGETS, budget, status)
        if problem:
            self.warn(budget, "CalculateExpectedPodCountFailed", problem)
        ends = [(parse_time(at) or wall) + EVICTION_SECONDS - wall for at in evicted.values()]
        return min((max(0.1, t) for t in ends), default=None)

    def _expected(self, budget: Unstructured, pods: list[Unstructured]) -> tuple[int, int, str]:
        """Expected pods, how many must be healthy, and why that is not known."""
        spec = budget.raw.get("spec") or {}
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is not None or isinstance(least, str):
            expected, problem = self._replicas_of(pods)
            if problem:
                return 0, 0, problem
            if most is not None:
                return expected, max(0, expected - resolve(most, expected, up=True)), ""
            return expected, resolve(least, expected, up=True), ""
        return len(pods), resolve(least, len(pods), up=True, default=1), ""

    def _replicas_of(self, pods: list[Unstructured]) -> tuple[int, str]:
        """The sum of the wanted replicas of all owners."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = next((o for o in pod.metadata.owner_references if o.controller), None)
            if owner is None:
                return 0, f'found no controller ref for pod "{pod.name}"'
            found = self.scaled[owner.kind].get(f"{pod.namespace}/{owner.name}") if owner.kind in _SCALED else None
            if found is None or found.uid != owner.uid:
                return 0, f'found no controllers for pod "{pod.name}"'
            above = next((o for o in found.metadata.owner_references if o.controller), None)
            parent = None
            if above is not None and above.kind in _SCALED:
                parent = self.scaled[above.kind].get(f"{pod.namespace}/{above.name}")
            chosen = parent or found
            owners[chosen.uid] = wanted_replicas(chosen)
        return sum(owners.values()), ""


def selector_matches(budget: Unstructured, pod: Unstructured) -> bool:
    """An empty selector selects every pod, none selects no pod."""
    spec = (budget.raw.get("spec") or {}).get("selector")
    if spec is None:
        return False
    return not spec or selector_of(budget).matches(pod.labels)


def _still_evicted(budget: Unstructured, pods: Iterable[Unstructured], wall: float) -> dict[str, str]:
    """Pods whose eviction was granted a moment ago and whose deletion is not seen yet."""
    noted: dict[str, str] = (budget.raw.get("status") or {}).get("disruptedPods") or {}
    living = {p.name for p in pods if not is_terminating(p)}
    return {
        name: at for name, at in noted.items() if name in living and (parse_time(at) or 0.0) + EVICTION_SECONDS > wall
    }


def status_of(
    budget: Unstructured, expected: int, desired: int, healthy: int, evicted: dict[str, str], problem: str, now: str
) -> Raw:
    allowed = max(0, healthy - desired) if expected > 0 and not problem else 0
    reason = "SufficientPods" if allowed else "SyncFailed" if problem else "InsufficientPods"
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": reason,
        "message": problem,
        "observedGeneration": budget.metadata.generation,
    }
    before = (budget.raw.get("status") or {}).get("conditions")
    status: Raw = {
        "observedGeneration": budget.metadata.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_condition(before, condition, now),
    }
    if evicted:
        status["disruptedPods"] = evicted
    return status
