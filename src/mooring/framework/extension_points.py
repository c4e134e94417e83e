"""The table of extension points, in the order in which a pod meets them.

Configurations, the registry, profiles and metrics all read this table; what a point does is written at its
class in `points`.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.framework import points
from mooring.framework.lifting import writes_any

PRE_ENQUEUE = "PreEnqueue"
QUEUE_SORT = "QueueSort"
PRE_FILTER = "PreFilter"
FILTER = "Filter"
POST_FILTER = "PostFilter"
PRE_SCORE = "PreScore"
SCORE = "Score"
RESERVE = "Reserve"
PERMIT = "Permit"
PRE_BIND = "PreBind"
BIND = "Bind"
POST_BIND = "PostBind"
# Calls that metrics label as extension points, although no configuration names them.
UNRESERVE = "Unreserve"
PRE_FLIGHT = "PreBindPreFlight"
SIGN = "Sign"


class ExtensionPoint(NamedTuple):
    """One row."""

    label: str
    """As in metrics, records and Go: PreFilter."""
    plugin: type[points.Plugin]
    """What a plugin inherits from to take part."""
    methods: tuple[str, ...]
    """At least one of these must be the plugin's own."""
    built: int
    """The position at which kube-scheduler builds the point: its first complaint about a plugin that it does
    not know names the first of them."""

    @property
    def name(self) -> str:
        """As in a configuration: preFilter."""
        return self.label[0].lower() + self.label[1:]

    @property
    def go_type(self) -> str:
        """The Go interface, which is what messages of kube-scheduler say: PreFilterPlugin."""
        return f"{self.label}Plugin"


EXTENSION_POINTS = (
    ExtensionPoint(PRE_ENQUEUE, points.PreEnqueuePlugin, ("pre_enqueue",), 10),
    ExtensionPoint(QUEUE_SORT, points.QueueSortPlugin, ("less", "key"), 11),
    ExtensionPoint(PRE_FILTER, points.PreFilterPlugin, ("pre_filter",), 0),
    ExtensionPoint(FILTER, points.FilterPlugin, ("filter", "filter_nodes"), 1),
    ExtensionPoint(POST_FILTER, points.PostFilterPlugin, ("post_filter",), 2),
    ExtensionPoint(PRE_SCORE, points.PreScorePlugin, ("pre_score",), 4),
    ExtensionPoint(SCORE, points.ScorePlugin, ("score", "score_nodes", "score_into"), 5),
    ExtensionPoint(RESERVE, points.ReservePlugin, ("reserve", "unreserve"), 3),
    ExtensionPoint(PERMIT, points.PermitPlugin, ("permit",), 9),
    ExtensionPoint(PRE_BIND, points.PreBindPlugin, ("pre_bind",), 6),
    ExtensionPoint(BIND, points.BindPlugin, ("bind",), 7),
    ExtensionPoint(POST_BIND, points.PostBindPlugin, ("post_bind",), 8),
)

BY_NAME = {point.name: point for point in EXTENSION_POINTS}
"""By the name in a configuration."""
BUILT = tuple(sorted(BY_NAME, key=lambda name: BY_NAME[name].built))
"""The names in the order in which kube-scheduler builds the points."""


def implemented_by(cls: type[points.Plugin]) -> frozenset[str]:
    """The names of the points that a plugin class inherits from."""
    return frozenset(point.name for point in EXTENSION_POINTS if issubclass(cls, point.plugin))


def unwritten(cls: type[points.Plugin]) -> list[str]:
    """Complaints about points that the class claims without writing their method."""
    return [
        f"inherits {point.plugin.__name__} but defines no {' or '.join(f'{m}()' for m in point.methods)}"
        for point in sorted(EXTENSION_POINTS, key=lambda point: point.name)
        if issubclass(cls, point.plugin) and not writes_any(cls, point.plugin, point.methods)
    ]
