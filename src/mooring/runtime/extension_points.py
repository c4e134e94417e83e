"""The extension points by their configuration names, and what a plugin class implements."""

from __future__ import annotations

from mooring.framework import points

BY_NAME: dict[str, type[points.Plugin]] = {
    "preEnqueue": points.PreEnqueuePlugin,
    "queueSort": points.QueueSortPlugin,
    "preFilter": points.PreFilterPlugin,
    "filter": points.FilterPlugin,
    "postFilter": points.PostFilterPlugin,
    "preScore": points.PreScorePlugin,
    "score": points.ScorePlugin,
    "reserve": points.ReservePlugin,
    "permit": points.PermitPlugin,
    "preBind": points.PreBindPlugin,
    "bind": points.BindPlugin,
    "postBind": points.PostBindPlugin,
}


def implemented_by(cls: type[points.Plugin]) -> frozenset[str]:
    """The points that a plugin class inherits from."""
    return frozenset(name for name, base in BY_NAME.items() if issubclass(cls, base))
