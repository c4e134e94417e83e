"""Arguments of PodTopologySpread: which constraints a pod without any gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from mooring.api.meta import qualified_name_faults
from mooring.api.pod import TopologySpreadConstraint
from mooring.api.problems import Problem, child, duplicate, forbidden, invalid, required, unsupported
from mooring.framework.args import ArgsContext, PluginArgs

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class PodTopologySpreadArgs(PluginArgs):
    """Spread constraints for pods that bring none."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING

    def completed(self, context: ArgsContext) -> Self:
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM_DEFAULTING)

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        where = child(path, "defaultingType")
        if self.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            yield unsupported(where, self.defaulting_type, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
        elif self.defaulting_type == SYSTEM_DEFAULTING and self.default_constraints:
            yield invalid(where, self.defaulting_type, "when .defaultConstraints are not empty")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            where = child(path, "defaultConstraints", index)
            yield from _validate_constraint(constraint, where)
            key = (constraint.topology_key, constraint.when_unsatisfiable)
            if key in seen:
                yield duplicate(where, f"{{{key[0]}, {key[1]}}}")
            seen.add(key)


def _validate_constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    if constraint.max_skew <= 0:
        yield invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(child(path, "topologyKey"), "can not be empty")
    else:
        for fault in qualified_name_faults(constraint.topology_key):
            yield invalid(child(path, "topologyKey"), constraint.topology_key, fault)
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if not constraint.when_unsatisfiable:
        yield required(child(path, "whenUnsatisfiable"), "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        yield unsupported(child(path, "whenUnsatisfiable"), constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(child(path, "labelSelector"), detail)
