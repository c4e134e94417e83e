"""Versions of the configuration: which one a file says it is, which are read, and what became of plugins that are gone.
Data for conversion and for better messages."""

from collections.abc import Mapping

from moorage.api.problems import Problem, did_you_mean, required
from moorage.config.types import API_VERSION, GROUP, KIND

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


def identify(tree: object) -> tuple[str, list[Problem]]:
    """The version (`v1beta2`) of a KubeSchedulerConfiguration, or why the file is not one."""
    if not isinstance(tree, Mapping):
        message = f"expected a mapping with apiVersion {API_VERSION} and kind {KIND}"
        return "", [Problem(path="", message=message)]
    api_version, kind = tree.get("apiVersion"), tree.get("kind")
    missing = [required(name) for name in ("apiVersion", "kind") if not tree.get(name)]
    if missing:
        return "", missing
    if kind != KIND:
        return "", [_wrong_kind(tree, api_version, kind)]
    group, _, version = str(api_version).rpartition("/")
    if group == GROUP and version in SERVED:
        return version, []
    return "", [_wrong_version(str(api_version), group, version)]


def _wrong_kind(tree: Mapping[str, object], api_version: object, kind: object) -> Problem:
    if kind == "Policy":
        message = f"this is a Policy, which Kubernetes read up to 1.22, not a {KIND}"
        hint = "start with --policy-config-file, or write what `moorage convert` prints"
        return Problem(path="kind", message=message, value=kind, hint=hint)
    if kind == "ConfigMap":
        data = tree.get("data")
        keys = ", ".join(map(str, data)) if isinstance(data, Mapping) else "none"
        message = f"this is a ConfigMap, not the {KIND} inside it"
        hint = f"give the text below data; its keys: {keys}"
        return Problem(path="kind", message=message, value=kind, hint=hint)
    message = f'no kind "{kind}" is registered for version "{api_version}"; expected {KIND}'
    return Problem(path="kind", message=message, value=kind, hint=did_you_mean(str(kind), [KIND]))


def _wrong_version(api_version: str, group: str, version: str) -> Problem:
    if group == GROUP and version in GONE:
        message = f"{api_version} was served by Kubernetes {GONE[version]} and is not accepted"
        hint = f"write the file as {API_VERSION}; v1beta1 and later are converted when read"
        return Problem(path="apiVersion", message=message, value=api_version, hint=hint)
    message = f'no kind "{KIND}" is registered for version "{api_version}"'
    known = [f"{GROUP}/{name}" for name in SERVED]
    return Problem(path="apiVersion", message=message, value=api_version, hint=did_you_mean(api_version, known))
