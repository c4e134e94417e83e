"""The extension points by their configuration names, and what a plugin class implements."""

from __future__ import annotations

from mooring.framework import points
from mooring.framework.lifting import writes_any

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

_MUST_WRITE: dict[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("less", "key"),
    "preFilter": ("pre_filter",),
    "filter": ("filter", "filter_nodes"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score", "score_nodes", "score_into"),
    "reserve": ("reserve", "unreserve"),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
}
"""At least one of these methods must be the plugin's own."""


def implemented_by(cls: type[points.Plugin]) -> frozenset[str]:
    """The points that a plugin class inherits from."""
    return frozenset(name for name, base in BY_NAME.items() if issubclass(cls, base))


def unwritten(cls: type[points.Plugin]) -> list[str]:
    """Complaints about points that the class claims without writing their method."""
    return [
        f"inherits {BY_NAME[name].__name__} but defines no {' or '.join(f'{m}()' for m in _MUST_WRITE[name])}"
        for name in sorted(implemented_by(cls))
        if not writes_any(cls, BY_NAME[name], _MUST_WRITE[name])
    ]
