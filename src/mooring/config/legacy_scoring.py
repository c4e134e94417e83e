"""Plugins of v1beta1 whose work another plugin does today: the three resource scores, and NodeLabel."""

from msgspec.structs import replace

from mooring.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from mooring.api.pod import NodeAffinity
from mooring.config.drafting import Draft
from mooring.config.gates import DEFAULT_GATES
from mooring.config.legacy_args import AllocationArgs, NodeLabelArgs, RatioArgs
from mooring.config.plugin_args import NodeAffinityArgs, NodeResourcesFitArgs
from mooring.config.problems import Problem
from mooring.config.scoring_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from mooring.config.types import Plugin

_FIT = "NodeResourcesFit"
_LEAST = "NodeResourcesLeastAllocated"
_STRATEGIES = {
    _LEAST: LEAST_ALLOCATED,
    "NodeResourcesMostAllocated": MOST_ALLOCATED,
    "RequestedToCapacityRatio": REQUESTED_TO_CAPACITY_RATIO,
}


def convert_resource_scores(draft: Draft) -> None:
    """Least, most and ratio become the one scoring strategy of NodeResourcesFit."""
    own = draft.enabled("score")
    # The first was on by default, beside whatever else was enabled.
    default = () if draft.is_off("score", _LEAST) else (_LEAST,)
    active = list(dict.fromkeys((*default, *(name for name in own if name in _STRATEGIES))))
    _keep_fit_off(draft, active)
    if len(active) > 1:
        draft.problem(_two_strategies(draft, active))
    for name in _STRATEGIES:
        if name in own:
            draft.replace("score", name, Plugin(name=_FIT, weight=own[name].weight or 1))
            draft.note(draft.where("score", name), f"{name} became {_FIT}, scoring by {_STRATEGIES[name]}")
        _move_args(draft, name, used=active[:1] == [name])


def _keep_fit_off(draft: Draft, active: list[str]) -> None:
    """Disabling the score that was on by default must not leave its successor on."""
    for name in _STRATEGIES:
        instead = () if active or name != _LEAST else (Plugin(name=_FIT),)
        draft.replace_disabled("score", name, *instead)


def _two_strategies(draft: Draft, active: list[str]) -> Problem:
    message = f"{' and '.join(active)} are both enabled, but {_FIT} scores by one strategy only"
    hint = f"disable {active[0]}" if active[0] == _LEAST else "keep one of them"
    return Problem(path=draft.where("score", active[1]), message=message, value=active, hint=hint)


def _move_args(draft: Draft, name: str, used: bool) -> None:
    path = draft.where_args(name)
    args = draft.take_args(name)
    if used:
        fit = draft.args(_FIT)
        base = fit if isinstance(fit, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        fresh = replace(base, scoring_strategy=_strategy(name, args))
        draft.set_args(_FIT, fresh.completed(DEFAULT_GATES, ()))
    elif args is not None:
        draft.note(path, f"dropped, because {name} is not enabled")


def _strategy(name: str, args: object) -> ScoringStrategy:
    resources = args.resources if isinstance(args, AllocationArgs) else ()
    ratio = RequestedToCapacityRatioParam(shape=args.shape) if isinstance(args, RatioArgs) else None
    return ScoringStrategy(type=_STRATEGIES[name], resources=resources, requested_to_capacity_ratio=ratio)


def convert_node_label(draft: Draft) -> None:
    """NodeLabel becomes an affinity that NodeAffinity adds to every pod of the profile."""
    filters, scores = "NodeLabel" in draft.enabled("filter"), "NodeLabel" in draft.enabled("score")
    path = draft.where_args("NodeLabel")
    args = draft.take_args("NodeLabel")
    if not filters and not scores:
        if args is not None:
            draft.note(path, "dropped, because NodeLabel is not enabled")
        return
    labels = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()
    for point in ("filter", "score"):
        if "NodeLabel" in draft.enabled(point):
            _hand_over(draft, point)
    if not filters:
        labels = replace(labels, present_labels=(), absent_labels=())
    if not scores:
        labels = replace(labels, present_labels_preference=(), absent_labels_preference=())
    affinity = draft.args("NodeAffinity")
    base = affinity if isinstance(affinity, NodeAffinityArgs) else NodeAffinityArgs()
    draft.set_args("NodeAffinity", NodeAffinityArgs(added_affinity=_added(base.added_affinity, labels)))


def _hand_over(draft: Draft, point: str) -> None:
    path = draft.where(point, "NodeLabel")
    if draft.is_off(point, "NodeAffinity") and "NodeAffinity" not in draft.enabled(point):
        message = f"NodeLabel cannot become part of NodeAffinity, which is disabled at {point}"
        draft.problem(Problem(path=path, message=message, hint="enable NodeAffinity, or remove NodeLabel"))
    draft.replace(point, "NodeLabel")
    text = "NodeLabel became addedAffinity of NodeAffinity"
    draft.note(path, text if point == "filter" else f"{text}, which scores with its own weight")


def _added(given: NodeAffinity | None, labels: NodeLabelArgs) -> NodeAffinity:
    affinity = given or NodeAffinity()
    demands = _expressions(labels.present_labels, "Exists") + _expressions(
        labels.absent_labels, "DoesNotExist"
    )
    wishes = _expressions(labels.present_labels_preference, "Exists")
    wishes += _expressions(labels.absent_labels_preference, "DoesNotExist")
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=_both(
            affinity.required_during_scheduling_ignored_during_execution, demands
        ),
        preferred_during_scheduling_ignored_during_execution=preferred
        + tuple(
            PreferredSchedulingTerm(weight=1, preference=NodeSelectorTerm(match_expressions=(wish,)))
            for wish in wishes
        ),
    )


def _expressions(keys: tuple[str, ...], operator: str) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(NodeSelectorRequirement(key=key, operator=operator) for key in keys)


def _both(given: NodeSelector | None, demands: tuple[NodeSelectorRequirement, ...]) -> NodeSelector | None:
    """Terms are alternatives, so the demands join each of them."""
    if not demands:
        return given
    terms = given.node_selector_terms if given is not None else (NodeSelectorTerm(),)
    return NodeSelector(
        node_selector_terms=tuple(
            replace(term, match_expressions=term.match_expressions + demands) for term in terms
        )
    )
