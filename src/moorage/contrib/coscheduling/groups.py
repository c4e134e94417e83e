"""The state of a group: its PodGroup object, its members and its progress.

A pod belongs to the group that its label names, in its own namespace. Members and objects come from the informers.
`Progress` is what only the scheduler knows: which members have a node, the plan, and when the group failed. All
profiles share it, and it survives a reload. `plugin` decides which members may start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from moorage.api.pod import Pod
from moorage.api.quantity import Quantity
from moorage.api.resources import PODS, Unstructured, custom
from moorage.api.times import parse_time
from moorage.framework.handle import Handle
from moorage.framework.status import Status

LABEL = "scheduling.x-k8s.io/pod-group"
PODGROUPS = custom("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")


def group_of(pod: Pod) -> str:
    """Return `namespace/name` of the pod's group; empty for a pod without one."""
    name = pod.labels.get(LABEL)
    return f"{pod.namespace}/{name}" if name else ""


class GroupObject:
    """The fields of a PodGroup object; a missing or invalid number counts as 0."""

    def __init__(self, obj: Unstructured) -> None:
        self.key = obj.key
        self.min_member = _whole(obj.get("spec", "minMember"))
        self.timeout = _whole(obj.get("spec", "scheduleTimeoutSeconds"))
        self.created = parse_time(obj.metadata.creation_timestamp) or 0.0
        self.min_resources: Mapping[str, Quantity] | None = obj.get("spec", "minResources")


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


@dataclass(slots=True)
class Round:
    """A group that fits and whose members are getting their nodes one after the other."""

    planned: dict[str, tuple[Pod, str]]
    """UID → pod and node, of the members that have none yet."""
    until: float
    """Seconds of the scheduler's clock; after that nothing is kept for it."""

    def take(self, uid: str, node: str) -> None:
        """Record the node of a member. If the node was planned for another member, they swap."""
        _, meant = self.planned.pop(uid, (None, ""))
        if meant and meant != node:
            for other, (pod, planned) in self.planned.items():
                if planned == node:
                    self.planned[other] = (pod, meant)
                    return


@dataclass(slots=True)
class Progress:
    """The progress of one group. Times are seconds of the scheduler's clock unless noted otherwise."""

    placed: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    """UID → pod and node, of the members that have one, bound or not."""
    held: set[str] = field(default_factory=set)
    """UIDs of those that wait in Permit."""
    leaving: dict[str, bool] = field(default_factory=dict)
    """UID → whether they were rejected with their group, of members that wait no longer but have not given
    their node back yet."""
    pinned: bool = False
    """The last round failed although the group fitted: the next one goes where the plan says, and not where
    scores lead."""
    failures: int = 0
    """Of pinned rounds, since the group last started."""
    refused: Status | None = None
    """The plan failed: the answer for the members that come next, until something has changed."""
    refused_at: float = 0.0
    fitting: int = 0
    """How many members that plan had a node for, with those that have one."""
    failed_at: float | None = None
    """Wall clock. Until the group has started it sorts by this, so that it does not hold up younger ones."""
    backoff_until: float = 0.0
    called: bool = False
    """Something that may help has happened since the backoff began."""
    passed_until: float = 0.0
    """minResources was there; until then it is not looked for again."""
    waits_for: str = ""
    """What the last member that could not start was waiting for."""
    lacks_members: bool = False
    """Refused because pods were missing or gated: more capacity does not help."""

    def drop(self, uid: str) -> None:
        """Stop counting the member."""
        self.placed.pop(uid, None)
        self.held.discard(uid)


class Groups:
    """All groups of the process, by key."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._objects = handle.lister(PODGROUPS)
        self._members = handle.object_index(
            "Coscheduling.members", PODS, lambda pod: (key,) if (key := group_of(pod)) else ()
        )
        self._progress: dict[str, Progress] = handle.shared("Coscheduling.progress", dict)
        self.rounds: dict[str, Round] = handle.shared("Coscheduling.rounds", dict)
        self._plans: list[str] = handle.shared("Coscheduling.plans", list)
        """The group that is being planned, if any."""

    @property
    def is_planning(self) -> bool:
        """Return whether a plan is being made: its dry runs call PreFilter of all plugins, including Coscheduling."""
        return bool(self._plans)

    @contextmanager
    def planning(self, key: str) -> Iterator[None]:
        self._plans.append(key)
        try:
            yield
        finally:
            self._plans.pop()

    def podgroup(self, key: str) -> GroupObject | None:
        """Return the PodGroup object; None for a pod without a group, or if the object does not exist."""
        found = self.object(key)
        return GroupObject(found) if found is not None else None

    def object(self, key: str) -> Unstructured | None:
        """Return the PodGroup object as the API server has it."""
        namespace, _, name = key.partition("/")
        return self._objects.get(name, namespace) if name else None

    def members(self, key: str) -> list[Pod]:
        """Return all pods with the label that have not ended, including running ones, by name."""
        return sorted(self._members.at(key), key=lambda pod: pod.name)

    def unplaced(self, pod: Pod) -> Iterator[Pod]:
        """Return the pod and the other members that could get a node in the same round, nominated ones first, without
        members of other profiles."""
        yield pod
        progress = self.progress(group_of(pod))
        for member in sorted(self.members(group_of(pod)), key=lambda found: not found.nominated_node_name):
            if (
                not (member.uid in progress.placed or member.uid in progress.leaving)
                and member.uid != pod.uid
                and not (member.is_gated or member.is_terminating or member.is_assigned)
                and member.scheduler_name == pod.scheduler_name
            ):
                yield member

    def progress(self, key: str) -> Progress:
        found = self._progress.get(key)
        if found is None:
            found = self._progress[key] = Progress()
        return found

    def waits_for(self, key: str) -> str:
        """Return what a group waits for, if a member was tried."""
        found = self._progress.get(key)
        return found.waits_for if found is not None else ""

    def waiting(self, key: str) -> list[str]:
        """Return the UIDs of the members that wait in Permit. A member that timed out or that another plugin rejected
        no longer counts as placed, although its node is not released yet."""
        progress = self.progress(key)
        for uid in sorted(progress.held):
            if self._handle.waiting_pod(uid) is None:
                progress.drop(uid)
                progress.leaving[uid] = False
        return sorted(progress.held)

    def round(self, key: str) -> Round | None:
        """Return the current round, unless it has timed out."""
        found = self.rounds.get(key)
        return found if found is not None and found.until > self._handle.clock.now() else None

    def planned_besides(self, key: str) -> Iterator[tuple[Pod, str]]:
        """Return the members of other groups that are about to get a node, with their nodes."""
        for other in self.rounds:
            if other != key and (under_way := self.round(other)) is not None:
                yield from under_way.planned.values()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> Sequence[str]:
        """Process an informer event and return the groups that it affects."""
        before, after = (group_of(pod) if pod is not None else "" for pod in (old, new))
        if not before and not after:
            return ()
        if new is not None and after and not new.is_terminal:
            progress = self.progress(after)
            progress.refused = None
            if new.is_assigned:
                progress.placed[new.uid] = (new, new.spec.node_name)
                progress.held.discard(new.uid)
                self._unplan(after, new.uid)
        if old is not None and before and (new is None or new.is_terminal or before != after):
            self._leave(before, old.uid)
        return tuple({key: None for key in (before, after) if key})

    def _leave(self, key: str, uid: str) -> None:
        progress = self.progress(key)
        progress.drop(uid)
        progress.refused = None
        self._unplan(key, uid)
        self.prune(key)

    def _unplan(self, key: str, uid: str) -> None:
        if (under_way := self.rounds.get(key)) is not None:
            under_way.planned.pop(uid, None)

    def prune(self, key: str) -> None:
        """Forget a group without pods: a group that reuses its name starts from scratch."""
        if not any(True for _ in self._members.at(key)):
            self._progress.pop(key, None)
            self.rounds.pop(key, None)
