"""A score plugin as the runtime calls it: everything about it that does not change is looked up once."""

from __future__ import annotations

from mooring.framework.lifting import writes
from mooring.framework.points import ScorePlugin
from mooring.framework.scoring import Normalization


class ScoreStep:
    """One score plugin of a profile, with its weight and the way its scores are normalised."""

    __slots__ = (
        "anywhere",
        "is_summed",
        "may_be_dirty",
        "name",
        "normalization",
        "normalizes",
        "normalizes_rows",
        "plugin",
        "weight",
    )

    def __init__(self, plugin: ScorePlugin, weight: int) -> None:
        self.plugin = plugin
        self.name: str = plugin.name
        self.weight = weight
        self.anywhere: bool = plugin.scores_anywhere
        self.may_be_dirty: bool = plugin.scores_anywhere and plugin.writes_all_scores
        """Whether its buffer need not hold zeros."""
        self.normalization: Normalization | None = plugin.normalization
        self.normalizes = writes(plugin, "normalize_nodes") or writes(plugin, "normalize_scores")
        self.normalizes_rows = writes(plugin, "normalize_rows")
        self.is_summed = self.normalization is None and not self.normalizes
        """Whether a raw score counts as it is, so that rows can be added up one by one."""
