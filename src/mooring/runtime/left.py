"""Which plugins are still asked about a pod whose other answers are remembered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mooring.framework.points import FilterPlugin, PreFilterPlugin, PreScorePlugin
from mooring.runtime.profile import Profile
from mooring.runtime.score_steps import ScoreStep


@dataclass(frozen=True, slots=True)
class Left:
    """The plugins that remain to be asked for each pod, in configured order."""

    pre_filters: tuple[PreFilterPlugin, ...]
    filters: tuple[FilterPlugin, ...]
    pre_scores: tuple[PreScorePlugin, ...]
    scores: tuple[ScoreStep, ...]


def left_of(profile: Profile, known: Collection[str], late: Collection[str] = ()) -> Left:
    """All but the known ones; the filters in `late` are asked again all the same."""
    return Left(
        tuple(p for p in profile.pre_filter if p.name not in known),
        tuple(p for p in profile.filter if p.name not in known or p.name in late),
        tuple(p for p in profile.pre_score if p.name not in known),
        tuple(step for step in profile.score_steps if step.name not in known),
    )
