"""The predicates and priorities of Kubernetes 1.18 to 1.22, and the plugins of today for them. Data only."""

from collections.abc import Mapping

from moorage.config import versions

AFFINITY, FIT, SPREAD = "NodeAffinity", "NodeResourcesFit", "PodTopologySpread"
LIMITS, PODS, TAINTS = "NodeVolumeLimits", "InterPodAffinity", "TaintToleration"

# In the order in which predicates ran.
PREDICATES: Mapping[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": (FIT, "NodeName", "NodePorts", AFFINITY),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": (AFFINITY,),
    "PodFitsResources": (FIT,),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": (TAINTS,),
    "PodToleratesNodeNoExecuteTaints": (TAINTS,),
    # Nodes with a bad condition are tainted since 1.12.
    "CheckNodeCondition": (TAINTS, "NodeUnschedulable"),
    "CheckNodeMemoryPressure": (TAINTS,),
    "CheckNodeDiskPressure": (TAINTS,),
    "CheckNodePIDPressure": (TAINTS,),
    "CheckNodeLabelPresence": (AFFINITY,),
    "CheckServiceAffinity": (),
    "MaxEBSVolumeCount": (LIMITS,),
    "MaxGCEPDVolumeCount": (LIMITS,),
    "MaxCSIVolumeCountPred": (LIMITS,),
    "MaxAzureDiskVolumeCount": (LIMITS,),
    "MaxCinderVolumeCount": (LIMITS,),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": (SPREAD,),
    "MatchInterPodAffinity": (PODS,),
}
MANDATORY = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
# Without the three limits of cloud providers, which NodeVolumeLimits covers.
DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "CheckVolumeBinding",
    "EvenPodsSpread",
)

PRIORITIES: Mapping[str, str] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": SPREAD,
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": PODS,
    "LeastRequestedPriority": FIT,
    "MostRequestedPriority": FIT,
    "NodeAffinityPriority": AFFINITY,
    "RequestedToCapacityRatioPriority": FIT,
    "SelectorSpreadPriority": SPREAD,
    "ServiceSpreadingPriority": SPREAD,
    "TaintTolerationPriority": TAINTS,
}
# The scoringStrategy of NodeResourcesFit.
STRATEGIES = {"LeastRequestedPriority": "LeastAllocated", "MostRequestedPriority": "MostAllocated"}
# Priorities without a successor, and what to say about it.
DROPPED: Mapping[str, str] = {
    "EqualPriority": "it gave all nodes the same score",
    "NodePreferAvoidPodsPriority": versions.successor("NodePreferAvoidPods"),
    "ResourceLimitsPriority": "it has no equivalent; no score looks at limits",
}
DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
