"""Arguments of NodeResourceTopologyMatch, as in scheduler-plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from moorage.api.meta import Int64, Record
from moorage.api.problems import Problem, child, unsupported
from moorage.api.resource_weights import DEFAULT_RESOURCES, ResourceSpec, weighted
from moorage.framework.args import ArgsContext, PluginArgs

LEAST_ALLOCATED, MOST_ALLOCATED = "LeastAllocated", "MostAllocated"
BALANCED_ALLOCATION, LEAST_NUMA_NODES = "BalancedAllocation", "LeastNUMANodes"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, BALANCED_ALLOCATION, LEAST_NUMA_NODES)
NONE, ALL, ONLY_EXCLUSIVE = "None", "All", "OnlyExclusiveResources"
AUTODETECT = "Autodetect"
DEDICATED, SHARED = "Dedicated", "Shared"
ONLY_RESOURCES = "OnlyResources"
DISABLED, ENABLED = "Disabled", "Enabled"


class ZoneScoringStrategy(Record):
    """How nodes are scored."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """Weights; a requested resource that is not named has weight 1."""


class CacheArgs(Record):
    """Details of the over-reserve cache."""

    foreign_pods_detect: str = ALL
    """Which pods of other schedulers make the data of their node invalid until it is published anew."""
    resync_method: str = AUTODETECT
    """Which pods are in the fingerprint of a node; `Autodetect`: the object says so."""
    informer_mode: str = DEDICATED
    """`Dedicated`: pods that have ended count in the fingerprint as long as they exist. `Shared`: they do not."""
    resync_scope: str = ALL
    """`All`: changed settings of the topology manager count at once. `OnlyResources`: with the zones."""


CHOICES = (
    ("foreignPodsDetect", (NONE, ALL, ONLY_EXCLUSIVE)),
    ("resyncMethod", (AUTODETECT, ALL, ONLY_EXCLUSIVE)),
    ("informerMode", (DEDICATED, SHARED)),
    ("resyncScope", (ALL, ONLY_RESOURCES)),
)


class NodeResourceTopologyMatchArgs(PluginArgs):
    """How nodes are scored, and which cache is used."""

    scoring_strategy: ZoneScoringStrategy = ZoneScoringStrategy()
    cache_resync_period_seconds: Int64 = 0
    """Above 0: the over-reserve cache, with this pause between two looks at what was published."""
    discard_reserved_nodes: bool = False
    """Nodes with a pod that is being bound are not used; then the period above means nothing."""
    cache: CacheArgs = CacheArgs()
    preemption_mode: str = DISABLED

    def completed(self, context: ArgsContext) -> Self:
        resources = weighted(self.scoring_strategy.resources)
        strategy = msgspec.structs.replace(self.scoring_strategy, resources=resources)
        return msgspec.structs.replace(self, scoring_strategy=strategy)

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if self.scoring_strategy.type not in STRATEGIES:
            where = child(path, "scoringStrategy", "type")
            yield unsupported(where, self.scoring_strategy.type, STRATEGIES)
        written = msgspec.to_builtins(self.cache)
        for name, known in CHOICES:
            if written.get(name, known[0]) not in known:
                yield unsupported(child(path, "cache", name), written[name], known)
        if self.preemption_mode not in (DISABLED, ENABLED):
            yield unsupported(child(path, "preemptionMode"), self.preemption_mode, (DISABLED, ENABLED))
