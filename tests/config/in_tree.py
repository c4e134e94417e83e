"""Which extension points the default plugins implement: what a registry would say."""

_POINTS = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queueSort": "PrioritySort",
    "preFilter": "NodeName NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
    "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
    "filter": "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity "
    "DynamicResources NodeDeclaredFeatures",
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity "
    "NodeResourcesBalancedAllocation",
    "score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity "
    "DynamicResources NodeResourcesBalancedAllocation ImageLocality",
    "reserve": "VolumeBinding DynamicResources",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
}
# Effective order at each point under the default configuration.
DEFAULT_ORDER: dict[str, list[str]] = {point: names.split() for point, names in _POINTS.items()}

IMPLEMENTS: dict[str, frozenset[str]] = {
    name: frozenset(point for point, names in DEFAULT_ORDER.items() if name in names)
    for names in DEFAULT_ORDER.values()
    for name in names
}


def with_plugins(**points: str) -> dict[str, frozenset[str]]:
    """The in-tree plugins and others: `with_plugins(mine="filter score")`."""
    return IMPLEMENTS | {name: frozenset(given.split()) for name, given in points.items()}
