"""What a configuration contains when its file does not say: the default plugins of each version, as data, and
the fields whose default depends on another field or on being absent.

Constant defaults are written where the field is (`types`); the rules for joining default and chosen plugins
are in `merging`.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from moorage.config.gates import FeatureGates
from moorage.config.types import (
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.framework.args import ArgsContext, PluginArgs

DEFAULT_SCHEDULER_NAME = "default-scheduler"

# multiPoint order and weight of 1.36.
_V1: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
)
# Appended when their gate is on.
_GATED: tuple[tuple[str, str, int], ...] = (
    ("NodeDeclaredFeatures", "NodeDeclaredFeatures", 0),
    ("GangScheduling", "GangScheduling", 0),
    ("TopologyAwareWorkloadScheduling", "TopologyPlacementGenerator", 0),
    ("TopologyAwareWorkloadScheduling", "PodGroupPodsCount", 1),
)
# Where the weights of v1beta1 and v1beta2 differ from v1.
_BETA_WEIGHTS: Mapping[str, int] = {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}

DEFAULT_NAMES: frozenset[str] = frozenset(name for name, _ in _V1) | {name for _, name, _ in _GATED}

# Part of every conversion although the old versions did not know them: pods that use these features would
# otherwise be placed wrongly on a cluster of today.
NEWER_THAN_BETA = ("SchedulingGates", "DynamicResources", "NodeDeclaredFeatures")

# Default plugins per point of v1beta1 and v1beta2, where re-listing one of them had a meaning of its own.
_BETA_POINTS: Mapping[str, tuple[str, ...]] = {
    "queueSort": ("PrioritySort",),
    "preFilter": (
        "NodeResourcesFit",
        "NodePorts",
        "VolumeRestrictions",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeBinding",
        "NodeAffinity",
    ),
    "filter": (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "EBSLimits",
        "GCEPDLimits",
        "NodeVolumeLimits",
        "AzureDiskLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ),
    "postFilter": ("DefaultPreemption",),
    "preScore": ("InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"),
    "score": (
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "InterPodAffinity",
        "NodeAffinity",
        "PodTopologySpread",
        "TaintToleration",
    ),
    "reserve": ("VolumeBinding",),
    "preBind": ("VolumeBinding",),
    "bind": ("DefaultBinder",),
}
_BETA1_SCORE = ("NodeResourcesLeastAllocated", "NodePreferAvoidPods")
_BETA2_SCORE = ("NodeResourcesFit",)


def default_configuration(args_types: Mapping[str, type], gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Return what loading a file without any field returns, without the steps for what a file may contain."""
    plugins, context = default_plugins("v1", gates), ArgsContext(gates)
    names = sorted({entry.name for entry in plugins.multi_point.enabled} & args_types.keys())
    args = ((name, args_types[name]()) for name in names)
    profile = Profile(
        scheduler_name=DEFAULT_SCHEDULER_NAME,
        plugins=plugins,
        plugin_config=tuple(
            PluginConfig(name=name, args=own.completed(context) if isinstance(own, PluginArgs) else own)
            for name, own in args
        ),
    )
    return complete(KubeSchedulerConfiguration(profiles=(profile,)))


def default_plugins(version: str, gates: FeatureGates) -> Plugins:
    """The default plugins of a version in the form of v1: everything in multiPoint, with its own weights."""
    weights = _BETA_WEIGHTS if version in ("v1beta1", "v1beta2") else {}
    table = [*_V1, *((name, weight) for gate, name, weight in _GATED if gates(gate))]
    enabled = tuple(Plugin(name=name, weight=weights.get(name, weight)) for name, weight in table)
    return Plugins(multi_point=PluginSet(enabled=enabled))


def default_names_at(version: str, point: str) -> frozenset[str]:
    """The plugins that v1beta1 and v1beta2 enable at one point by default."""
    names = _BETA_POINTS.get(point, ())
    if point == "score":
        names += _BETA1_SCORE if version == "v1beta1" else _BETA2_SCORE
    return frozenset(names)


def fill_absent(body: Mapping[str, object]) -> dict[str, object]:
    """A copy of a file's content with the defaults that apply only to what is absent, not to what is zero."""
    filled = dict(body)
    if filled.get("enableContentionProfiling") is None:
        filled["enableContentionProfiling"] = filled.get("enableProfiling") is not False
    profiles = filled.get("profiles")
    if profiles is None or profiles == []:
        filled["profiles"] = profiles = [{}]
    # Only a lone profile may stay nameless: several could not be distinguished.
    if isinstance(profiles, list) and len(profiles) == 1 and isinstance(profiles[0], Mapping):
        only = dict(profiles[0])
        if only.get("schedulerName") is None:
            only["schedulerName"] = DEFAULT_SCHEDULER_NAME
        filled["profiles"] = [only]
    return filled


def complete(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """With zero values replaced where upstream takes zero for unset."""
    return replace(
        config,
        leader_election=_complete_leader_election(config.leader_election),
        client_connection=_complete_client_connection(config.client_connection),
        extenders=tuple(
            replace(extender, http_timeout=extender.http_timeout or Extender().http_timeout)
            for extender in config.extenders
        ),
    )


def _complete_leader_election(given: LeaderElection) -> LeaderElection:
    default = LeaderElection()
    return replace(
        given,
        lease_duration=given.lease_duration or default.lease_duration,
        renew_deadline=given.renew_deadline or default.renew_deadline,
        retry_period=given.retry_period or default.retry_period,
        resource_lock=given.resource_lock or default.resource_lock,
        resource_name=given.resource_name or default.resource_name,
        resource_namespace=given.resource_namespace or default.resource_namespace,
    )


def _complete_client_connection(given: ClientConnection) -> ClientConnection:
    default = ClientConnection()
    return replace(
        given,
        content_type=given.content_type or default.content_type,
        qps=given.qps or default.qps,
        burst=given.burst or default.burst,
    )
