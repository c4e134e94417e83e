"""Preview an upgrade of kube-scheduler: what the new minor makes of a configuration, of objects and of every pod.

Every pod is judged on one state as both minors decide. For a pod about which they differ, each change of the new minor
is tried alone on the older one, to find the change that is responsible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.api.pod import Pod
from moorage.api.pod_defaults import with_decoding_defaults
from moorage.api.resources import PODS, Resource, custom
from moorage.api.versions import ANY_PLUGIN, BEHAVIOURS, REMOVED_KINDS, Behaviour, FieldChange
from moorage.app.configuration import Configuration
from moorage.app.gc_tuning import gc_paused
from moorage.app.offline import question_engine
from moorage.config import FeatureGates
from moorage.explain.comparing import Decider, EngineDecider, compare
from moorage.explain.versioned import (
    ERROR,
    GATE,
    ConfigurationChange,
    ConfigurationText,
    changed_problems,
    changed_profiles,
)
from moorage.framework.ports import Change, Extender, Served
from moorage.snapshots.cluster import ClusterObjects

SEVERAL = "several"
"""The reason of a pod whose answer no single change alters: only several of them together do."""
_SEVERAL_TEXT = "Several changes of the version together; none of them alone changes the answer."


@dataclass(frozen=True, slots=True)
class UpgradeStep:
    """One change of the new minor, tried alone: the gates of the older minor with only this changed."""

    name: str
    """The field of `Behaviour`, or the feature gate."""
    text: str
    gates: FeatureGates


@dataclass(frozen=True, slots=True)
class PodChange:
    """A pod about which the minors differ."""

    answer: Mapping[str, Any]
    """`to_dict` of the difference."""
    reasons: tuple[str, ...]
    """The names of the steps that are responsible."""

    def to_dict(self) -> dict[str, Any]:
        return {**self.answer, "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class RemovedObjects:
    """Objects of an API version that the new minor no longer serves."""

    kind: str
    api_version: str
    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "apiVersion": self.api_version, "names": list(self.names)}


@dataclass(frozen=True, slots=True)
class UpgradePreview:
    """What an upgrade changes."""

    before: str
    after: str
    configuration: tuple[ConfigurationChange, ...] = ()
    removed: tuple[RemovedObjects, ...] = ()
    pods: tuple[PodChange, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Responsible change → its sentence, the one with the most pods first."""
    without_effect: int = 0
    """Number of pods whose scores or refusals differ and for which nothing else does."""
    judged: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Why pods were not judged → their number."""
    also_changes: tuple[FieldChange, ...] = ()
    """Changes that the judgement of one state cannot show."""

    @property
    def has_effect(self) -> bool:
        return bool(self.pods or self.removed or any(change.kind == ERROR for change in self.configuration))

    def to_dict(self) -> dict[str, Any]:
        counts = Counter(name for pod in self.pods for name in pod.reasons)
        answer: dict[str, Any] = {"from": self.before, "to": self.after, "judged": self.judged}
        answer |= {"skipped": dict(self.skipped), "configuration": [each.to_dict() for each in self.configuration]}
        if self.removed:
            answer["removedObjects"] = [each.to_dict() for each in self.removed]
        reasons = [{"change": name, "text": text, "pods": counts[name]} for name, text in self.reasons.items()]
        also = [{"change": each.field, "text": each.text} for each in self.also_changes]
        pods = [pod.to_dict() for pod in self.pods]
        return answer | {"reasons": reasons, "pods": pods, "withoutEffect": self.without_effect, "alsoChanges": also}


async def preview(
    cluster: ClusterObjects,
    given: ConfigurationText,
    path: tuple[Behaviour, Behaviour],
    extenders: Sequence[Extender] = (),
) -> UpgradePreview:
    """Compare two minors on one cluster. Raises a MoorageError for a configuration that neither of them accepts."""
    older, newer = path[0].minor, path[1].minor
    (old, old_problems), (new, new_problems) = given.gates(older), given.gates(newer)
    before, unusable = given.read(old)
    after, refused = given.read(new)
    problems = (*old_problems, *unusable), (*new_problems, *refused)
    changes = [*changed_problems(*problems, newer, older, given.source)]
    removed = tuple(_removed(cluster, path))
    if before is None or after is None:
        return UpgradePreview(older, newer, tuple(changes), removed)
    steps = upgrade_steps(old, new, before)
    changes += [*_changed_gates(old, new, before, given), *changed_profiles(before, after)]

    def build(gates: FeatureGates) -> Decider:
        configured = given.read(gates)[0]
        assert configured is not None  # it was usable with the gates of both minors
        with gc_paused():
            return EngineDecider(question_engine(configured, _read_as(cluster, configured), extenders=extenders))

    pods, skipped = _judged_pods(cluster, before, after)
    found, without_effect = await changed_pods(build, old, new, steps, pods)
    counts = Counter(name for pod in found for name in pod.reasons)
    texts = {**{step.name: step.text for step in steps}, SEVERAL: _SEVERAL_TEXT}
    reasons = {name: texts[name] for name, _ in counts.most_common()}
    also = tuple(each for each in path[0].changes_to(path[1]) if not each.decides)
    also = tuple(each for each in also if each.field not in ("minor", "release"))
    return UpgradePreview(
        older, newer, tuple(changes), removed, tuple(found), reasons, without_effect, len(pods), skipped, also
    )


async def changed_pods(
    build: Callable[[FeatureGates], Decider],
    old: FeatureGates,
    new: FeatureGates,
    steps: Iterable[UpgradeStep],
    pods: Iterable[Pod],
) -> tuple[list[PodChange], int]:
    """Return the pods about which the deciders of two minors differ, with the responsible steps, and the number of pods
    whose differences have no effect. `build` makes the decider for gates."""
    answers: dict[str, dict[str, Any]] = {}
    digests: dict[str, tuple[bytes, bytes]] = {}
    without_effect = 0
    listed = list(pods)
    async for found in compare(build(old), build(new), listed):
        if found.has_effect:
            answers[found.pod] = found.to_dict()
            digests[found.pod] = found.before.digest(), found.after.digest()
        else:
            without_effect += 1
    differing = [pod for pod in listed if pod.key in digests]
    reasons = await _responsible(build, steps, differing, digests)
    return [PodChange(answer, reasons[key]) for key, answer in answers.items()], without_effect


async def _responsible(
    build: Callable[[FeatureGates], Decider],
    steps: Iterable[UpgradeStep],
    pods: Sequence[Pod],
    digests: Mapping[str, tuple[bytes, bytes]],
) -> dict[str, tuple[str, ...]]:
    """Return pod → the step that alone leads to the new answer, or else all that change the old one. One step is tried
    at a time, because each needs a cluster of its own in memory."""
    alone: dict[str, str] = {}
    partly: dict[str, list[str]] = {pod.key: [] for pod in pods}
    for step in steps:
        remaining = [pod for pod in pods if pod.key not in alone]
        if not remaining:
            break
        decider = build(step.gates)
        for pod in remaining:
            tried, (old, new) = (await decider.decide(pod)).digest(), digests[pod.key]
            if tried == new:
                alone[pod.key] = step.name
            elif tried != old:
                partly[pod.key].append(step.name)
    return {key: (alone[key],) if key in alone else tuple(some) or (SEVERAL,) for key, some in partly.items()}


def upgrade_steps(old: FeatureGates, new: FeatureGates, configured: Configuration) -> list[UpgradeStep]:
    """Return every change of the new minor that can change what the plugins of a configuration decide."""
    enabled = {ANY_PLUGIN, *(cls.name for cls in configured.plugins())}
    found = [
        UpgradeStep(
            change.field,
            change.text,
            FeatureGates(chosen=old.chosen, version=old.version, overrides={change.field: change.value}),
        )
        for change in old.behaviour.changes_to(new.behaviour)
        if change.decides in enabled
    ]
    for name, flipped in _flipped_gates(old, new):
        if flipped.behaviour == old.behaviour:  # otherwise a field stands for the gate
            found.append(UpgradeStep(name, _gate_text(name, new), flipped))
    return found


def _flipped_gates(old: FeatureGates, new: FeatureGates) -> Iterator[tuple[str, FeatureGates]]:
    """Yield each gate that both minors know and that is on in only one of them, with the gates of the older minor in
    which it alone is changed."""
    for name in old.known:
        if name in new.known and old(name) != new(name):
            yield name, FeatureGates(chosen={**old.chosen, name: new(name)}, version=old.version)


def _gate_text(name: str, new: FeatureGates) -> str:
    effect, state = new.known[name].effect, "on" if new(name) else "off"
    return f"{effect} (feature gate {name})." if effect else f"The feature gate {name} is {state}."


def _changed_gates(
    old: FeatureGates, new: FeatureGates, before: Configuration, given: ConfigurationText
) -> Iterator[ConfigurationChange]:
    """Yield the gates with another default that change a plugin of the configuration."""
    enabled = {cls.name for cls in before.plugins()}
    for name, flipped in _flipped_gates(old, new):
        fields = [each for each in old.behaviour.changes_to(flipped.behaviour) if each.decides in enabled]
        configured = given.read(flipped)[0]
        if fields or (configured is not None and configured.profiles != before.profiles):
            why = (fields[0].text if fields else _gate_text(name, new)).replace(f" (feature gate {name})", "")
            now, then = ("on", "off") if new(name) else ("off", "on")
            default = "" if name in old.chosen else " by default"
            yield ConfigurationChange(GATE, name, f"It is {now}{default} instead of {then}. {why}")


def _judged_pods(
    cluster: ClusterObjects, before: Configuration, after: Configuration
) -> tuple[list[Pod], dict[str, int]]:
    """Return the pods that these configurations schedule, and how many were left out for which reason."""
    names = {profile.scheduler_name for profile in (*before.profiles, *after.profiles)}
    found: list[Pod] = []
    skipped: Counter[str] = Counter()
    for pod in cluster.objects.get(PODS, ()):
        if pod.is_terminal or pod.is_terminating:
            skipped["ending"] += 1
        elif pod.scheduler_name not in names:
            skipped["otherScheduler"] += 1
        elif pod.is_gated and not pod.is_assigned:
            skipped["gated"] += 1
        else:
            found.append(pod)
    return found, dict(skipped)


def _read_as(cluster: ClusterObjects, configured: Configuration) -> Iterator[Change | Served]:
    """Yield the objects as a version decodes them, without kinds that were read only because they go away."""
    gone = {custom(*kind) for kinds in REMOVED_KINDS.values() for kind in kinds} - {*configured.resources()}
    for change in cluster.changes():
        if isinstance(change, Change) and change.resource == PODS:
            pod = with_decoding_defaults(change.new, configured.behaviour)
            yield Change(PODS, None, pod, initial=True)
        elif change.resource not in gone:
            yield change


def going_away(path: tuple[Behaviour, Behaviour]) -> list[Resource]:
    """Return the kinds that minors after the first no longer serve, up to the second."""
    minors = list(BEHAVIOURS)
    passed = minors[minors.index(path[0].minor) + 1 : minors.index(path[1].minor) + 1]
    return [custom(*kind) for minor in passed for kind in REMOVED_KINDS.get(minor, ())]


def _removed(cluster: ClusterObjects, path: tuple[Behaviour, Behaviour]) -> Iterator[RemovedObjects]:
    for resource in going_away(path):
        if names := tuple(obj.key for obj in cluster.objects.get(resource, ())):
            yield RemovedObjects(resource.kind, resource.api_version, names)
