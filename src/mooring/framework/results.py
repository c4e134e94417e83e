"""What extension points return beside a Status."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.pod import Pod


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """PreFilter's answer that only these nodes are worth looking at. Results of several plugins are
    intersected; names that are not nodes are dropped."""

    node_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter decided about the pod's nomination.

    `nominated_node` None leaves `status.nominatedNodeName` alone, "" clears it, a name sets it. `victims` are
    the pods that have to go; for the decision record.
    """

    nominated_node: str | None = None
    victims: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True)
class PreBindPreFlight:
    """PreBind's announcement that it will do something for this pod. Neighbouring plugins that allow it
    run at the same time."""

    allow_parallel: bool = False
