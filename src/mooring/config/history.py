"""What became of versions and plugins that are gone: data for conversion and for better messages."""

from collections.abc import Mapping

# Versions of the group that are read, with the Kubernetes releases that served them.
SERVED: Mapping[str, str] = {
    "v1": "1.25 and later",
    "v1beta3": "1.23 to 1.28",
    "v1beta2": "1.22 to 1.27",
    "v1beta1": "1.19 to 1.22",
}
# Versions that are recognised but not read.
GONE: Mapping[str, str] = {"v1alpha2": "1.18 only", "v1alpha1": "up to 1.18"}

LIMITS_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

# Plugins that v1beta1 was the last version to accept.
GONE_SINCE_V1BETA2 = (
    "NodeLabel",
    "NodePreferAvoidPods",
    "NodeResourcesLeastAllocated",
    "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio",
    "ServiceAffinity",
)

_FIT = "NodeResourcesFit took its place, with scoringStrategy.type"
_SUCCESSORS: Mapping[str, str] = {
    "NodeLabel": "NodeAffinity took its place, with addedAffinity in its args",
    "NodePreferAvoidPods": "it has no equivalent; mark the nodes with taints",
    "NodeResourcesLeastAllocated": f"{_FIT} LeastAllocated",
    "NodeResourcesMostAllocated": f"{_FIT} MostAllocated",
    "RequestedToCapacityRatio": f"{_FIT} RequestedToCapacityRatio",
    "SelectorSpread": "PodTopologySpread took its place, with defaultingType System",
    "ServiceAffinity": "it has no equivalent; pod affinity and PodTopologySpread come nearest",
    **dict.fromkeys(LIMITS_PLUGINS, "NodeVolumeLimits took its place"),
}


def successor(name: str) -> str:
    """What to use instead of a plugin that is gone, in words; empty for any other name."""
    return _SUCCESSORS.get(name, "")
