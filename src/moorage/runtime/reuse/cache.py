"""ReuseCache: which baseline an attempt gets, what is kept of it afterwards, and for how long.

signature seen before and kept          TemplateBaseline, with its changed rows judged again
only what the pod demands of nodes      NodeSetBaseline, made when it is first asked for
neither, or the attempt is special      NothingKnown
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.failures import is_interruption
from moorage.api.recent import Recent
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Code, Status
from moorage.runtime.attempt import Attempt, Baseline, NothingKnown
from moorage.runtime.pre_filtering import run_pre_filter
from moorage.runtime.profile import Profile
from moorage.runtime.reuse import node_set, template
from moorage.runtime.reuse.node_set import NodeSetBaseline
from moorage.runtime.reuse.refreshing import FEW_CHANGES, MAX_CHANGES, refresh
from moorage.runtime.reuse.signatures import Key, Signature, VersionOf
from moorage.runtime.reuse.template import TemplateBaseline
from moorage.runtime.reuse.turns import Turns

TEMPLATE_BYTES = 64 * 1024 * 1024
NODE_SET_BYTES = 32 * 1024 * 1024
_SEEN = 4096
"""Signatures whose policy are counted."""
_MAX_WAIT = 64
"""Pods of one signature between two times that a baseline is built which is never used."""
_WORTHWHILE = 3
"""How many pods have to use a baseline until building it has paid: it costs more than an attempt saves."""

MAX_CHANGES_BY_TURNS = 1024
"""As `refreshing.MAX_CHANGES`, where templates take turns."""
_ENOUGH_SEEN = 8
"""After this many pods a baseline is built even if few seem to be pending: that number is an estimate."""


class ReusePolicy:
    """Counts pods with one signature that no baseline served, and decides when to build a baseline.

    If enough pods are pending together, it is built for the first one. Otherwise it is built for the second one,
    because most signatures occur once, and only if that one comes soon: if many templates take turns, more rows change
    in between than can be judged again. A baseline that is lost before any pod has used it costs more than it saves, so
    the next one is built four times later each time. A baseline that is lost because the nodes changed is not counted.
    """

    __slots__ = ("_seen", "_unused", "_version", "_wait", "_waiting")

    def __init__(self) -> None:
        self._seen = -1
        """Pods since a baseline was built."""
        self._unused = False
        """Whether one was built that no pod has started from."""
        self._wait = 1
        self._version = 0
        """Of the node table, when the last pod came."""
        self._waiting = 0
        """Pods that waited behind that one."""

    def is_due(self, waiting: int, version: int, most_changes: int) -> bool:
        """Count one pod, with this many similar pods pending behind it, and return whether to build a baseline for it.
        After more changes than `most_changes` it would be lost before the next pod comes."""
        comes_late = version - self._version > most_changes
        came_together = waiting or self._waiting
        self._version, self._waiting = version, waiting
        self._seen += 1
        if self._unused:
            self._unused, self._wait = False, min(4 * self._wait, _MAX_WAIT)
        if self._wait == 1 and came_together:
            if waiting < _WORTHWHILE and self._seen < _ENOUGH_SEEN:
                return False
        elif comes_late or self._seen < self._wait:
            return False
        self._seen, self._unused = 0, True
        return True

    def used(self) -> None:
        """Record that a pod has used the baseline."""
        self._unused, self._wait = False, 1

    def nodes_changed(self) -> None:
        """Record that the baseline was lost because the nodes changed."""
        self._unused = False


class NoReuse:
    """Starts every attempt from nothing, for comparisons and for single questions."""

    def find(self, attempt: Attempt) -> Baseline:
        return NothingKnown(attempt.profile)

    def keep(self, attempt: Attempt) -> None:
        """Keep nothing."""

    def clear(self) -> None:
        """Do nothing, since nothing was kept."""


class ReuseCache(NoReuse):
    """The baselines of a process."""

    def __init__(
        self,
        version_of: VersionOf,
        template_bytes: int = TEMPLATE_BYTES,
        node_set_bytes: int = NODE_SET_BYTES,
        seen: int = _SEEN,
    ) -> None:
        self._version_of = version_of
        self.templates: Recent[Key, TemplateBaseline] = Recent(template_bytes, self._leave_turns)
        self.node_sets: Recent[Key, NodeSetBaseline] = Recent(node_set_bytes)
        """Baselines, weighed by their bytes."""
        self._nothing: dict[Profile, NothingKnown] = {}
        self._latest: Key | None = None
        """The signature of the latest baseline that was found; the next pod often has the same."""
        self._latest_found: TemplateBaseline | None = None
        self._policies: Recent[Key, ReusePolicy] = Recent(seen)
        self._turns = Turns()

    def find(self, attempt: Attempt) -> Baseline:
        """Return what is known before any plugin is called for the pod."""
        signature = attempt.info.signature
        # Where a sample of the nodes is looked at, or one node is tried first, nothing is shared.
        special = attempt.profile.samples or attempt.pod.status.nominated_node_name
        if special or type(signature) is not Signature:
            return self._nothing_known(attempt.profile)
        if signature.waiting:
            signature.waiting -= 1
        is_latest = signature is self._latest
        found = self._latest_found if is_latest else self.templates.get(signature)
        if found is not None:
            behind = attempt.nodes.columns.version - found.version
            if refresh(found, attempt.pod, attempt.every, self._turns):
                if behind > FEW_CHANGES and not found.takes_turns:
                    self._turns.join(found, attempt.pod)
                if not is_latest:
                    self._latest, self._latest_found = signature, found
                    if not found.was_used:
                        found.was_used = True
                        self._policy_of(signature).used()
                return found
            self._drop(signature)
            if found.every is not attempt.every:
                self._policy_of(signature).nodes_changed()
        if signature.about_nodes is None:
            return self._nothing_known(attempt.profile)
        return self._node_set(signature.about_nodes, attempt) or self._nothing_known(attempt.profile)

    def keep(self, attempt: Attempt) -> None:
        """Make a baseline for similar pods, if more of them are likely to come; called after PreFilter has left all
        nodes in play. The attempt continues from it, so that no plugin is called twice."""
        if attempt.baseline.by_template:
            return
        signature, special = attempt.info.signature, attempt.pod.status.nominated_node_name
        if special or attempt.profile.samples or type(signature) is not Signature:
            return
        version = attempt.nodes.columns.version
        most_changes = MAX_CHANGES_BY_TURNS if self._turns.may_begin(version) else MAX_CHANGES
        if not self._policy_of(signature).is_due(signature.waiting, version, most_changes):
            return
        before = attempt.state
        found = template.build(attempt.profile, attempt.pod, before.settled(), attempt.every, self._version_of)
        if found is None:
            return
        self._drop(signature)
        self.templates.put(signature, found, found.nbytes)
        self._turns.join(found, attempt.pod)
        attempt.baseline = found
        found.begin(attempt)
        attempt.state.skip_filter |= before.skip_filter
        attempt.state.to_activate = before.to_activate

    def clear(self) -> None:
        """Discard everything, because the plugins have changed."""
        self._turns = Turns()
        self.templates.clear()
        self.node_sets.clear()
        self._nothing.clear()
        self._latest = self._latest_found = None
        self._policies.clear()

    def _nothing_known(self, profile: Profile) -> NothingKnown:
        found = self._nothing.get(profile)
        if found is None:
            found = self._nothing[profile] = NothingKnown(profile)
        return found

    def _node_set(self, key: Key, attempt: Attempt) -> NodeSetBaseline | None:
        """Return the baseline of a node set; it is kept when it is asked for again."""
        found = self.node_sets.get(key)
        if found is not None:
            if found.holds:
                return found
            self.node_sets.drop(key)
        try:
            found = node_set.build(attempt.profile, attempt.pod, attempt.every, self._version_of)
        except BaseException as error:
            if is_interruption(error):
                raise
            return None  # starting from nothing meets that failure too, and names plugin and node
        if found is not None and key.was_asked:
            self.node_sets.put(key, found, found.nbytes)
        key.was_asked = True
        return found

    def _policy_of(self, signature: Key) -> ReusePolicy:
        found = self._policies.get(signature)
        return self._policies.put(signature, ReusePolicy()) if found is None else found

    def _leave_turns(self, gone: TemplateBaseline) -> None:
        self._turns.leave(gone)
        if gone is self._latest_found:
            self._latest = self._latest_found = None

    def _drop(self, signature: Key) -> None:
        gone = self.templates.drop(signature)
        if gone is not None:
            self._leave_turns(gone)
        if signature is self._latest:
            self._latest = self._latest_found = None


def leave_baseline(attempt: Attempt, asked: Sequence[PreFilterPlugin], status: Status) -> None:
    """Continue as if nothing were known, because a PreFilter plugin rejected the pod or narrowed the nodes, which takes
    precedence over the baseline. If the plugin ended PreFilter at once, the state is rebuilt without the plugins after
    it, which had run for the baseline."""
    profile, before = attempt.profile, attempt.state
    attempt.baseline = NothingKnown(profile)
    attempt.forget_refusals()
    if status.code not in (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR):
        return
    names = [plugin.name for plugin in profile.pre_filter]
    reached = names.index(status.plugin) if status.plugin in names else len(names)
    earlier = [plugin for plugin in profile.pre_filter[:reached] if plugin not in asked]
    attempt.state = before.detached()
    run_pre_filter(profile, attempt.state, attempt.pod, attempt.nodes, earlier)
