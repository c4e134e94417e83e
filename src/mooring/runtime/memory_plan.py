"""Which plugins answer from memory for one signature, and which run every time."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.pod import Pod
from mooring.framework.access import ROW
from mooring.framework.lifting import writes
from mooring.framework.points import FilterPlugin, PreScorePlugin
from mooring.runtime.dependence import Fingerprint, VersionOf, is_about_row, known_reads
from mooring.runtime.left import Left, left_of
from mooring.runtime.profile import Profile
from mooring.runtime.score_steps import ScoreStep


@dataclass(frozen=True, slots=True)
class Plan:
    """The plugins of a profile, sorted for pods of one signature."""

    filters: tuple[FilterPlugin, ...]
    """Those that answer from memory; the same below."""
    pre_scores: tuple[PreScorePlugin, ...]
    scores: tuple[ScoreStep, ...]
    left: Left
    """Those that run every time."""
    ranks: dict[str, int]
    """Filter plugin → its place in the configured order."""
    row_readers: frozenset[str]
    """Plugins whose answer may change with the pods of the node; that of the others only with the node."""
    fingerprint: Fingerprint
    """What the local answers depend on beside rows; a change makes the memory worthless."""
    start: int
    """What every node has before any plugin scores it: 1 where none does, so that all are equally good."""

    @property
    def is_complete(self) -> bool:
        """Whether everything comes from memory."""
        left = self.left
        return not (left.filters or left.pre_filters or left.pre_scores or left.scores)

    @property
    def may_be_followed(self) -> bool:
        """Whether all plugins whose scores are not remembered can keep them up to date."""
        scores = self.left.scores
        return bool(scores) and all(s.anywhere and writes(s.plugin, "follow_scores") for s in scores)


def make_plan(profile: Profile, pod: Pod, version_of: VersionOf) -> Plan:
    """Sort the plugins of a profile for pods like this one."""
    known = {plugin.name: known_reads(plugin, pod) for plugin in profile.plugins.values()}
    reads = {name: said for name, said in known.items() if said is not None and all(map(is_about_row, said))}
    return Plan(
        tuple(p for p in profile.filter if p.name in reads),
        tuple(p for p in profile.pre_score if p.name in reads),
        tuple(step for step in profile.score_steps if step.name in reads),
        left_of(profile, reads),
        {plugin.name: rank for rank, plugin in enumerate(profile.filter)},
        frozenset(name for name, said in reads.items() if ROW in said),
        Fingerprint((read for said in reads.values() for read in said), version_of),
        0 if profile.score else 1,
    )
