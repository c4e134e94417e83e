"""The table of extension points, in the order in which a pod meets them.

Configurations, the registry, profiles and metrics all read this table; what a point does is written at its
class in `points`.
"""

from __future__ import annotations

import inspect
from typing import NamedTuple

from moorage.framework import hot, lifting, points, vectorized
from moorage.framework.explaining import ExplainingPlugin
from moorage.framework.reusable import ReusablePlugin

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
    ExtensionPoint(PRE_ENQUEUE, points.PreEnqueuePlugin, 10),
    ExtensionPoint(QUEUE_SORT, points.QueueSortPlugin, 11),
    ExtensionPoint(PRE_FILTER, points.PreFilterPlugin, 0),
    ExtensionPoint(FILTER, points.FilterPlugin, 1),
    ExtensionPoint(POST_FILTER, points.PostFilterPlugin, 2),
    ExtensionPoint(PRE_SCORE, points.PreScorePlugin, 4),
    ExtensionPoint(SCORE, points.ScorePlugin, 5),
    ExtensionPoint(RESERVE, points.ReservePlugin, 3),
    ExtensionPoint(PERMIT, points.PermitPlugin, 9),
    ExtensionPoint(PRE_BIND, points.PreBindPlugin, 6),
    ExtensionPoint(BIND, points.BindPlugin, 7),
    ExtensionPoint(POST_BIND, points.PostBindPlugin, 8),
)

BY_NAME = {point.name: point for point in EXTENSION_POINTS}
"""By the name in a configuration."""
BUILT = tuple(sorted(BY_NAME, key=lambda name: BY_NAME[name].built))
"""The names in the order in which kube-scheduler builds the points."""


def implemented_by(cls: type[points.Plugin]) -> frozenset[str]:
    """The names of the points that a plugin class inherits from."""
    return frozenset(point.name for point in EXTENSION_POINTS if issubclass(cls, point.plugin))


FORMS: tuple[type[points.Plugin], ...] = (
    points.SortKeyPlugin,
    vectorized.VectorFilterPlugin,
    vectorized.VectorScorePlugin,
    ReusablePlugin,
    ExplainingPlugin,
    hot.WholeTableScorePlugin,
    hot.PreparedFilterPlugin,
    hot.PreparedScorePlugin,
    hot.HeadroomFilterPlugin,
    hot.IncrementalScorePlugin,
)
"""Classes that a plugin inherits to be asked in another form, beside the points themselves."""


MAY_WAIT = frozenset(("run", "post_filter", "pre_bind", "bind", "post_bind"))
"""The methods that may be `async def`; all others are plain calls."""


def mistakes(cls: type[points.Plugin]) -> list[str]:
    """Complaints about methods that the class claims by inheritance and does not define, defines without
    inheriting the class that has them called, or defines as coroutines where a plain call is due."""
    found = lifting.unwritten(cls) + _coroutines(cls)
    if issubclass(cls, points.ReservePlugin) and not _differs(cls, points.ReservePlugin):
        found.append("inherits ReservePlugin but defines no reserve() or unreserve()")
    for form in FORMS:
        if not issubclass(cls, form):
            names = [name for name, method in vars(form).items() if lifting.is_marked(method)]
            found += [
                f"defines {name}(), which is called only if it inherits {form.__name__}"
                for name in names
                if hasattr(cls, name)
            ]
    return found


def _coroutines(cls: type[points.Plugin]) -> list[str]:
    bases: list[type] = [points.Plugin, *(point.plugin for point in EXTENSION_POINTS), *FORMS]
    called = {name for base in bases if issubclass(cls, base) for name in vars(base) if name[0] != "_"}
    return [
        f"{name}() is `async def`, but its answer is not awaited: write a plain `def`, and do what has to "
        "wait in run() or handle.spawn()"
        for name in sorted(called - MAY_WAIT)
        if is_async(getattr(cls, name))
    ]


def is_async(method: object) -> bool:
    """Whether a call gives something to await instead of an answer."""
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def _differs(cls: type, base: type) -> bool:
    """Whether the class has its own version of a method of `base`."""
    methods = (name for name in vars(base) if not name.startswith("_"))
    return any(getattr(cls, name) is not getattr(base, name) for name in methods)
