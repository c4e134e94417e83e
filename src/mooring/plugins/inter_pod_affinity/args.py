"""Arguments of InterPodAffinity."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.meta import Int32
from mooring.api.problems import Problem, child, invalid
from mooring.framework.args import ArgsContext, PluginArgs


class InterPodAffinityArgs(PluginArgs):
    """Weight of a running pod's required affinity towards the incoming one."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")
