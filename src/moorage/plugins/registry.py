"""An explicit table of the default plugins that are implemented."""

from __future__ import annotations

from moorage.framework.points import Plugin
from moorage.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.dynamic_resources import DynamicResources
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.lifecycle import DefaultBinder, DefaultPreemption, PrioritySort, SchedulingGates
from moorage.plugins.name_and_cordon import NodeName, NodeUnschedulable
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_volume_limits import NodeVolumeLimits
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.taint_toleration import TaintToleration
from moorage.plugins.volume_binding import VolumeBinding
from moorage.plugins.volume_restrictions import VolumeRestrictions
from moorage.plugins.volume_zone import VolumeZone

DEFAULT: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
)
