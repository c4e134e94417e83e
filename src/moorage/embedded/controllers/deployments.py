"""Deployments: a ReplicaSet per template, and the way from the old ones to the new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from moorage.api.errors import AlreadyExists
from moorage.api.resources import Unstructured
from moorage.embedded.controllers import deployment_status, kinds, rollout
from moorage.embedded.controllers import rollout as revisions
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import is_finished, is_terminating
from moorage.embedded.controllers.ownership import claim, index_orphans, possible_owners
from moorage.embedded.controllers.rollout import RolloutLimits, SetSize

Raw = dict[str, Any]


class Deployments(Controller):
    """The controller of Deployments."""

    name = "deployment-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.deployments = self.watch(kinds.DEPLOYMENTS, own_key)
        self.sets = index_orphans(self.watch(kinds.REPLICA_SETS, self._keys_of))
        self.pods = self.caches.of(kinds.PODS)
        self.pods.handlers.append(self._pod_gone)

    def _keys_of(self, one: Unstructured) -> Iterable[str]:
        return possible_owners(self.deployments, one)

    def _pod_gone(self, old: Unstructured | None, new: Unstructured | None) -> None:
        """Recreate waits for the last old pod to be gone, which no ReplicaSet's status tells."""
        if old is None or new is not None:
            return
        for owner in old.metadata.owner_references:
            one = self.sets.get(f"{old.namespace}/{owner.name}") if owner.kind == "ReplicaSet" else None
            if one is not None:
                for key in self._keys_of(one):
                    if _strategy(self.deployments.get(key)) == "Recreate":
                        self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        deployment = self.deployments.get(key)
        if deployment is None:
            return None
        sets = await claim(self.writer, kinds.DEPLOYMENTS, deployment, self.sets)
        limits = RolloutLimits.of(deployment.raw["spec"])
        if not is_terminating(deployment):
            deployment = await self._roll_out(deployment, limits, sets)
        return await self._report(deployment, limits)

    async def _roll_out(
        self, deployment: Unstructured, limits: RolloutLimits, sets: list[Unstructured]
    ) -> Unstructured:
        new = revisions.find_new(deployment, sets)
        old = [one for one in sets if new is None or one.uid != new.uid]
        paused = bool(deployment.raw["spec"].get("paused"))
        if paused or _is_scaled(limits, sets):
            await self._scale(deployment, limits, new, old)
        elif _strategy(deployment) == "Recreate":
            deployment, new = await self._recreate(deployment, limits, new, old)
        else:
            deployment, new = await self._roll(deployment, limits, new, old)
        if not paused:
            await self._clean_up(deployment, limits, new, old)
        return deployment

    async def _roll(
        self, deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured]
    ) -> tuple[Unstructured, Unstructured]:
        deployment, current = await self._new_set(deployment, limits, new, old)
        sizes = rollout.step(limits, revisions.size_of(current), [revisions.size_of(one) for one in old])
        for one in (current, *old):
            if one.name in sizes:
                await self._resize(deployment, limits, one, sizes[one.name])
        return deployment, current

    async def _recreate(
        self, deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured]
    ) -> tuple[Unstructured, Unstructured | None]:
        running = [one for one in old if revisions.size_of(one).replicas]
        for one in running:
            await self._resize(deployment, limits, one, 0)
        if running or any(not is_finished(pod) for one in old for pod in self.pods.owned_by(one)):
            return deployment, new
        deployment, current = await self._new_set(deployment, limits, new, old)
        if revisions.size_of(current).replicas != limits.replicas:
            await self._resize(deployment, limits, current, limits.replicas)
        return deployment, current

    async def _scale(
        self, deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured]
    ) -> None:
        """The number changed, not the template."""
        every = [*old, *([new] if new is not None else [])]
        active = [one for one in every if revisions.size_of(one).replicas]
        if len(active) <= 1:
            only = active[0] if active else (new or _newest(every))
            sizes = {only.name: limits.replicas} if only is not None else {}
        elif new is not None and _is_saturated(limits, revisions.size_of(new)):
            sizes = {one.name: 0 for one in active if one.uid != new.uid}
        elif _strategy(deployment) == "Recreate":
            sizes = {}
        else:
            sizes = rollout.in_proportion(limits, [revisions.size_of(one) for one in active])
        noted = revisions.scale_annotations(limits)
        for one in every:
            size = sizes.get(one.name, revisions.size_of(one).replicas)
            stale = one in active and any(one.annotations.get(k) != v for k, v in noted.items())
            if size != revisions.size_of(one).replicas or stale:
                await self._resize(deployment, limits, one, size)

    async def _new_set(
        self, deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured]
    ) -> tuple[Unstructured, Unstructured]:
        """The set of the present template, made if there is none, with its revision on it."""
        number = revisions.next_revision(old)
        if new is None:
            deployment, new = await self._create_set(deployment, limits, number, old)
        else:
            wanted = revisions.annotations_for(deployment, limits, number, new)
            ready = deployment.raw["spec"].get("minReadySeconds") or 0
            if wanted != new.annotations or (new.raw["spec"].get("minReadySeconds") or 0) != ready:
                patch = {"metadata": {"annotations": wanted}, "spec": {"minReadySeconds": ready}}
                new = await self.writer.patch(kinds.REPLICA_SETS, new, patch)
        number = revisions.revision(new)
        if revisions.revision(deployment) != number:
            patch = {"metadata": {"annotations": {revisions.REVISION: str(number)}}}
            deployment = await self.writer.patch(kinds.DEPLOYMENTS, deployment, patch)
        return deployment, new

    async def _create_set(
        self, deployment: Unstructured, limits: RolloutLimits, number: int, old: Sequence[Unstructured]
    ) -> tuple[Unstructured, Unstructured]:
        sizes = [revisions.size_of(one) for one in old]
        size = limits.replicas
        if _strategy(deployment) != "Recreate":
            size = rollout.grow(limits, SetSize("", 0, 0, ""), sizes)
        raw = revisions.make_set(deployment, kinds.DEPLOYMENTS, limits, number, size)
        try:
            made = await self.writer.create(kinds.REPLICA_SETS, raw)
        except AlreadyExists:
            await self._collided(deployment, raw["metadata"]["name"])
            raise
        if size:
            note = f"Scaled up replica set {made.name} from 0 to {size}"
            self.event(deployment, "ScalingReplicaSet", note)
        return deployment, made

    async def _collided(self, deployment: Unstructured, name: str) -> None:
        """A set of that name exists. If it is another Deployment's or template's, the next name differs."""
        await self.writer.refresh(kinds.REPLICA_SETS, name, deployment.namespace)
        found = self.sets.get(f"{deployment.namespace}/{name}")
        if found is None or (
            any(o.uid == deployment.uid for o in found.metadata.owner_references)
            and revisions.find_new(deployment, [found]) is not None
        ):
            return
        status = deployment.raw.get("status") or {}
        status = {**status, "collisionCount": int(status.get("collisionCount") or 0) + 1}
        await self.writer.update_status(kinds.DEPLOYMENTS, deployment, status)

    async def _resize(self, deployment: Unstructured, limits: RolloutLimits, one: Unstructured, size: int) -> None:
        before = revisions.size_of(one).replicas
        patch = {"metadata": {"annotations": revisions.scale_annotations(limits)}, "spec": {"replicas": size}}
        await self.writer.patch(kinds.REPLICA_SETS, one, patch)
        if size != before:
            way = "up" if size > before else "down"
            note = f"Scaled {way} replica set {one.name} from {before} to {size}"
            self.event(deployment, "ScalingReplicaSet", note)

    async def _clean_up(
        self, deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured]
    ) -> None:
        """Forgets the oldest revisions once the rollout is complete."""
        status = self._status(deployment, limits, new, old)
        if new is not None and deployment_status.is_complete(limits, status):
            for one in revisions.to_drop(deployment, old):
                await self.writer.delete(kinds.REPLICA_SETS, one)

    def _status(
        self, deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured]
    ) -> Raw:
        return deployment_status.status_of(deployment, limits, new, old, self.clock.wall())

    async def _report(self, deployment: Unstructured, limits: RolloutLimits) -> float | None:
        current = self.deployments.get(deployment.key)
        if current is None:
            return None
        sets = [one for one in self.sets.owned_by(current) if not is_terminating(one)]
        new = revisions.find_new(current, sets)
        old = [one for one in sets if new is None or one.uid != new.uid]
        status = self._status(current, limits, new, old)
        current = await self.writer.update_status(kinds.DEPLOYMENTS, current, status)
        return deployment_status.seconds_to_deadline(current, self.clock.wall())


def _strategy(deployment: Unstructured | None) -> str:
    spec = deployment.raw["spec"] if deployment is not None else {}
    return str((spec.get("strategy") or {}).get("type") or "RollingUpdate")


def _is_scaled(limits: RolloutLimits, sets: Iterable[Unstructured]) -> bool:
    """Whether an active set was made for another number of replicas."""
    for one in sets:
        noted = one.annotations.get(revisions.DESIRED)
        if revisions.size_of(one).replicas and noted is not None and noted != str(limits.replicas):
            return True
    return False


def _is_saturated(limits: RolloutLimits, new: SetSize) -> bool:
    return new.replicas == limits.replicas and new.available == limits.replicas


def _newest(sets: Sequence[Unstructured]) -> Unstructured | None:
    ordered = sorted(sets, key=lambda one: (one.metadata.creation_timestamp or "", one.name))
    return ordered[-1] if ordered else None
