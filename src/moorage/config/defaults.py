"""Complete a configuration: default plugins, merged with those of a profile, and other defaults.

Constant defaults are written where the field is (`types`); here are those that depend on another field or on
its absence. Merging follows mergePluginSet in pkg/scheduler/apis/config/v1/default_plugins.go. What
multiPoint means for single points is decided in `resolving`, because plugins declare which they implement.
Parts of a profile that are valid but have no effect get a note, because they are often mistakes.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from moorage.api.problems import child
from moorage.config import versions
from moorage.config.gates import FeatureGates
from moorage.config.types import (
    MULTI_POINT,
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElection,
    Note,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.framework.args import ArgsContext, PluginArgs

DEFAULT_SCHEDULER_NAME = "default-scheduler"

_DefaultPlugins = tuple[tuple[str, int], ...]

# multiPoint order and weight of 1.36.
_V1_36: _DefaultPlugins = (
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
# 1.37 narrows to spec.nodeName before anything else.
_V1_37: _DefaultPlugins = (*_V1_36[:2], ("NodeName", 0), ("NodeUnschedulable", 0), *_V1_36[4:])

# Gate, plugin and weight: added when the gate is on, at the end or before another plugin.
_Gated = tuple[tuple[str, str, int, str], ...]
_GATED_1_36: _Gated = (
    ("NodeDeclaredFeatures", "NodeDeclaredFeatures", 0, ""),
    ("GangScheduling", "GangScheduling", 0, ""),
    ("TopologyAwareWorkloadScheduling", "TopologyPlacementGenerator", 0, ""),
    ("TopologyAwareWorkloadScheduling", "PodGroupPodsCount", 1, ""),
)
_GATED_1_37: _Gated = (
    ("InPlacePodVerticalScalingSchedulerPreemption", "DeferredPodScheduling", 0, "NodeResourcesFit"),
    ("NodeDeclaredFeatures", "NodeDeclaredFeatures", 0, ""),
    ("GenericWorkload", "GangScheduling", 0, ""),
    ("TopologyAwareWorkloadScheduling", "TopologyPlacementGenerator", 0, ""),
    ("TopologyAwareWorkloadScheduling", "PodGroupPodsCount", 1, ""),
)
# Minor → its default plugins, and those behind gates.
_BY_VERSION: Mapping[str, tuple[_DefaultPlugins, _Gated]] = {
    "1.36": (_V1_36, _GATED_1_36),
    "1.37": (_V1_37, _GATED_1_37),
}
# Where the weights of v1beta1 and v1beta2 differ from v1.
_BETA_WEIGHTS: Mapping[str, int] = {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}

DEFAULT_NAMES: frozenset[str] = frozenset(
    name
    for plugins, gated in _BY_VERSION.values()
    for name in (*(name for name, _ in plugins), *(name for _, name, _, _ in gated))
)

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
    plugins, gated = _BY_VERSION[gates.version]
    table = list(plugins)
    for gate, name, weight, before in gated:
        if gates(gate):
            names = [known for known, _ in table]
            table.insert(names.index(before) if before else len(table), (name, weight))
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


def merge(defaults: Plugins, custom: Plugins) -> Plugins:
    """Every set of `defaults` merged with its counterpart."""
    chosen = custom.sets()
    return Plugins.of({point: merge_set(own, chosen[point]) for point, own in defaults.sets().items()})


def merge_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    """Surviving defaults first, in place and perhaps with the custom weight; then the other custom entries.

    An entry that is both disabled and enabled is enabled, at the end. Entries enabled twice stay twice: the
    profile is refused for it when it is built, with upstream's message.
    """
    # Disabled entries are names; a weight given there never meant anything.
    disabled = tuple(Plugin(name=entry.name) for entry in (*custom.disabled, *defaults.disabled))
    off = {entry.name for entry in disabled}
    last = {entry.name: index for index, entry in enumerate(custom.enabled)}
    enabled: list[Plugin] = []
    consumed: set[int] = set()
    for default in () if "*" in off else defaults.enabled:
        if default.name in off:
            continue
        if default.name in last:
            consumed.add(last[default.name])
            enabled.append(custom.enabled[last[default.name]])
        else:
            enabled.append(default)
    enabled += [entry for index, entry in enumerate(custom.enabled) if index not in consumed]
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def user_named(defaults: Plugins, custom: Plugins) -> frozenset[str]:
    """Names that a profile enables itself.

    A multiPoint entry that only repeats a default changes nothing and does not count, so that a completed
    configuration means the same when it is read back.
    """
    repeated = set(defaults.multi_point.enabled)
    off = {entry.name for entry in custom.multi_point.disabled}
    return frozenset(
        entry.name
        for point, chosen in custom.sets().items()
        for entry in chosen.enabled
        if point != MULTI_POINT or entry not in repeated or off & {entry.name, "*"}
    )


def enabled_names(plugins: Plugins) -> frozenset[str]:
    """Every plugin enabled anywhere."""
    return frozenset(entry.name for chosen in plugins.sets().values() for entry in chosen.enabled)


def idle_disables(custom: Plugins, defaults: Plugins, version: str, path: str) -> Iterator[Note]:
    """Disabled plugins that were not going to run there anyway."""
    by_default = {entry.name for entry in defaults.multi_point.enabled}
    if version != "v1":
        by_default.update(versions.LIMITS_PLUGINS)  # conversion has its say about them
    spread = {entry.name for entry in custom.multi_point.enabled}
    for point, chosen in custom.sets().items():
        per_point = version in ("v1beta1", "v1beta2") and point != MULTI_POINT
        known = set(default_names_at(version, point)) if per_point else set(by_default)
        known |= {"*", *(spread if point != MULTI_POINT else ())}
        for index, entry in enumerate(chosen.disabled):
            if entry.name and entry.name not in known:
                message = f"{entry.name} is not enabled by default in {version}, so disabling it changes nothing"
                instead = versions.successor(entry.name)
                where = child(path, "plugins", point, "disabled", index)
                yield Note(path=where, message=f"{message}; {instead}" if instead else message)


def idle_args(written: Profile, completed: Profile, path: str) -> Iterator[Note]:
    """Arguments in the file of plugins that no extension point enables."""
    used = enabled_names(completed.plugins)
    kept = {entry.name for entry in completed.plugin_config}
    for index, entry in enumerate(written.plugin_config):
        if entry.name in kept - used:
            message = f"{entry.name} is not enabled at any extension point, so its args are not used"
            yield Note(path=child(path, "pluginConfig", index), message=message)
