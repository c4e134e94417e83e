"""KubeSchedulerConfiguration: wire types, defaults, conversion of old versions, validation with field paths.

    config = load(text, args_types)             a complete configuration, or ConfigError with every mistake
    profiles = resolve(config, implements)      the plugins at each extension point, in order, with weights
    text = dump(config)                         the completed configuration as YAML, version v1
    text, notes = convert_policy(policy)        the configuration that a legacy Policy amounts to

Knows plugins by name only, as data; builds and imports none.
"""

from moorage.api.problems import Problem
from moorage.config.defaults import default_configuration
from moorage.config.gates import FeatureGates
from moorage.config.loading import load, plugin_names, plugin_references, read
from moorage.config.policy_conversion import ConvertedPolicy, convert_policy
from moorage.config.resolving import PluginRef, ResolvedProfile, resolve, resolve_all
from moorage.config.types import (
    ClientConnection,
    ConfigError,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
    Note,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.config.wire import dump

__all__ = [
    "ClientConnection",
    "ConfigError",
    "ConvertedPolicy",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "FeatureGates",
    "KubeSchedulerConfiguration",
    "LeaderElection",
    "Note",
    "Plugin",
    "PluginConfig",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "Problem",
    "Profile",
    "ResolvedProfile",
    "convert_policy",
    "default_configuration",
    "dump",
    "load",
    "plugin_names",
    "plugin_references",
    "read",
    "resolve",
    "resolve_all",
]
