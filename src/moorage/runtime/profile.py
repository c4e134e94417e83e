"""A running profile: the plugin instances of one scheduler name, in order, per extension point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from moorage.api.failures import failure_text, is_interruption
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.framework import points
from moorage.framework.events import NODE, WITHOUT_REGISTRATION, ActionType, ClusterEvent, EventResource, Registration
from moorage.framework.points import EXTENSION_POINTS, Plugin
from moorage.runtime.registry import PluginError, is_async
from moorage.runtime.score_board import ScoreStep
from moorage.runtime.services import Services
from moorage.telemetry.metrics import ProfileMeter

EXTENDER = "Extender"
"""The plugin name of rejections by extenders."""

P = TypeVar("P", bound=Plugin)

_NAMES: Mapping[type[Plugin], str] = {point.plugin: point.name for point in EXTENSION_POINTS}


class Profile:
    """Built by `building.build_profile` and not changed afterwards. The phases (`filtering`, …) run it."""

    def __init__(
        self,
        name: str,
        by_point: Mapping[str, Sequence[Plugin]],
        weights: Mapping[str, int],
        services: Services,
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        def at(kind: type[P]) -> tuple[P, ...]:
            return tuple(plugin for plugin in by_point.get(_NAMES[kind], ()) if isinstance(plugin, kind))

        self.name = name
        """`schedulerName` of the pods it serves."""
        self.services = services
        self.weights = weights
        """Score plugin → weight."""
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        """0: all nodes are evaluated. 1-100: the compatible mode that samples as kube-scheduler does."""
        self.samples = 0 < percentage_of_nodes_to_score < 100
        self.pre_enqueue = at(points.PreEnqueuePlugin)
        self.queue_sort = at(points.QueueSortPlugin)[0]
        self.pre_filter = at(points.PreFilterPlugin)
        self.filter = at(points.FilterPlugin)
        self.post_filter = at(points.PostFilterPlugin)
        self.pre_score = at(points.PreScorePlugin)
        self.score = at(points.ScorePlugin)
        self.score_steps = tuple(ScoreStep(p, weights.get(p.name, 1)) for p in self.score)
        self.reserve = at(points.ReservePlugin)
        self.permit = at(points.PermitPlugin)
        self.pre_bind = at(points.PreBindPlugin)
        self.bind = at(points.BindPlugin)
        self.post_bind = at(points.PostBindPlugin)
        self.meter: ProfileMeter | None = None
        """Where durations are recorded; None: they are not measured."""
        self.plugins = {p.name: p for row in by_point.values() for p in row}
        """Every instance once, by name."""
        refusing = [p for point in EXTENSION_POINTS if point.refuses for p in by_point.get(point.name, ())]
        self._registrations = registrations(
            refusing, extenders=bool(services.extenders), behaviour=services.cluster.behaviour
        )
        self.deciding: tuple[Plugin, ...] = tuple(
            {p.name: p for p in (*refusing, *self.pre_score, *self.score)}.values()
        )
        """The plugins that decide where a pod goes, each once."""

    @property
    def registrations(self) -> Mapping[str, Sequence[Registration]]:
        """Map each plugin to the events that may make a pod that it rejected schedulable."""
        return self._registrations


def registrations(
    plugins: Iterable[Plugin], *, extenders: bool, behaviour: Behaviour = DEFAULT_BEHAVIOUR
) -> dict[str, Sequence[Registration]]:
    """Return the events of plugins that can reject a pod, with kube-scheduler's additions."""
    known: dict[str, Sequence[Registration]] = {}
    for plugin in plugins:
        try:
            known[plugin.name] = _registrations_of(plugin, behaviour)
        except BaseException as error:
            if is_interruption(error):
                raise
            text = f'plugin "{plugin.name}": events_to_register(): {failure_text(error)}'
            raise PluginError(text) from error
    if extenders:
        known[EXTENDER] = every_event()
    return known


def check_registrations(declared: object) -> list[Registration]:
    """Validate the result of `events_to_register()` at start, not at the first event. Raises TypeError."""
    if not isinstance(declared, Sequence) or isinstance(declared, str):
        raise TypeError(f"expected a list of Registration or None, got {declared!r}")
    for entry in declared:
        if not isinstance(entry, Registration):
            raise TypeError(f"expected a Registration, got {entry!r}")
        if not isinstance(entry.event, ClusterEvent):
            raise TypeError(f"the event of a Registration is a ClusterEvent, got {entry.event!r}")
        _check_event(entry.event.resource, entry.event.action)
        if entry.hint is not None and not callable(entry.hint):
            raise TypeError(f"the hint of a Registration is a function or None, got {entry.hint!r}")
        if is_async(entry.hint):
            raise TypeError(f"the hint of a Registration is a plain function, got `async def` {entry.hint!r}")
    return list(declared)


def _check_event(resource: object, action: object) -> None:
    if not isinstance(resource, EventResource):
        known = "NODE, POD and others are in moorage.framework.events"
        raise TypeError(f"the resource of a ClusterEvent is an EventResource ({known}), got {resource!r}")
    if not isinstance(action, ActionType):
        raise TypeError(f"the action of a ClusterEvent is an ActionType, got {action!r}")


def every_event() -> list[Registration]:
    return [Registration(ClusterEvent(resource, ActionType.ALL)) for resource in WITHOUT_REGISTRATION]


def _registrations_of(plugin: Plugin, behaviour: Behaviour) -> list[Registration]:
    declared = plugin.events_to_register()
    if declared is None:
        return every_event()
    found = check_registrations(declared)
    if not behaviour.node_add_implies_taint:
        return found
    # A node may be added tainted and become usable when the taint goes (kubernetes#109437).
    adds = any(r.event.resource == NODE and r.event.action & ActionType.ADD for r in found)
    taints = any(r.event.resource == NODE and r.event.action & ActionType.UPDATE_NODE_TAINT for r in found)
    if adds and not taints:
        found.append(Registration(ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT)))
    return found
