"""The options of `moorage run` beyond the configuration file, and the configuration, both from the flags.

A legacy Policy, in a file or a ConfigMap, takes the place of the configuration file.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from moorage.api.errors import MoorageError
from moorage.api.resources import CONFIG_MAPS, Unstructured
from moorage.api.versions import behaviour_of
from moorage.app.clock import SystemClock
from moorage.app.configuration import (
    EMPTY,
    Configuration,
    configure,
    configure_file,
    find_plugin,
    plugin_folders,
    read_file,
)
from moorage.app.reloading import SENT, ConfigurationSource
from moorage.client import connection
from moorage.config import ConvertedPolicy, convert_policy
from moorage.config.gates import DEFAULT_GATES, FeatureGates
from moorage.config.types import LeaderElection
from moorage.framework.points import Plugin
from moorage.run.flags import Flags

HEALTH_PATHS = ("/healthz", "/readyz", "/livez")
POLICY_KEY = "policy.cfg"
POLICY_SOURCES = ("config", "policy-config-file", "policy-configmap")


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Options of the HTTPS endpoints. Port 0 serves none."""

    bind_address: str = "127.0.0.1"
    port: int = 10259
    cert_file: str = ""
    key_file: str = ""
    cert_dir: str = ""
    min_version: str = ""
    """VersionTLS12 (the default) or VersionTLS13."""
    cipher_suites: tuple[str, ...] = ()
    client_ca_file: str = ""
    authentication_kubeconfig: str = ""
    """Empty for the credentials of the scheduler."""
    authorization_kubeconfig: str = ""
    skip_authentication: bool = False
    """Let every client read everything; for machines where no other user reaches the port."""
    skip_client_ca_lookup: bool = False
    """Do not read the client CA of the cluster; tokens are still reviewed."""
    tolerate_lookup_failure: bool = False
    """Start even if the client CA of the cluster cannot be read."""
    token_cache_seconds: float = 10.0
    allow_cache_seconds: float = 10.0
    deny_cache_seconds: float = 10.0
    always_allow_paths: tuple[str, ...] = HEALTH_PATHS
    configuration_changes: bool = False
    """Let users with the verb `post` on /moorage/v1/configuration change the configuration."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options that are not in the KubeSchedulerConfiguration."""

    kubeconfig: str = ""
    """Empty for that of the configuration, KUBECONFIG, the service account of the pod, or ~/.kube/config."""
    master: str = ""
    """The address of the API server, if not that of the credentials."""
    gates: FeatureGates = DEFAULT_GATES
    flush_after: float = 300.0
    """Seconds until an unschedulable pod is retried without an event."""
    serving: ServingOptions = field(default_factory=ServingOptions)
    identity: str = ""
    """The holder identity in the lease; generated if empty."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Every flag with its value, for /flagz."""
    disabled_metrics: Sequence[str] = ()
    source: ConfigurationSource | None = None
    """Where the configuration is reloaded from when it changes; None if it never does."""


def configuration_of(flags: Flags, sent: str | None = None, known: Sequence[type[Plugin]] = ()) -> Configuration:
    """Return the configuration file with the flags applied. Raises a ConfigError or MoorageError.

    `sent` replaces the file, and may name the plugins that are `known`.
    """
    folders = plugin_folders(flags.items("plugin-path"))
    plugins = [find_plugin(reference, folders) for reference in flags.items("plugin")]
    gates = gates_of(flags)
    if sent is not None:
        found = configure(sent, plugins=known, source=SENT, gates=gates)
    elif policy := policy_of(flags, gates):
        found = configure(policy.text, plugins=plugins, source="the Policy", gates=gates)
        notes = (*policy.notes, *found.config.notes)
        found = dataclasses.replace(found, config=structs.replace(found.config, notes=notes))
    elif path := flags.text("config"):
        found = configure_file(Path(path), plugins=plugins, gates=gates, folders=folders)
    else:
        found = configure(EMPTY, plugins=plugins, source="the default configuration", gates=gates)
    if name := flags.given.get("scheduler-name"):
        found = found.with_scheduler_name(name)
    config = found.config
    if not flags.has("config"):
        client_connection = structs.replace(config.client_connection, **flags.options("connection", given=True))
        config = structs.replace(config, client_connection=client_connection, **flags.options("debugging", given=True))
    config = structs.replace(config, leader_election=_election(config.leader_election, flags))
    return dataclasses.replace(found, config=config)


def gates_of(flags: Flags) -> FeatureGates:
    """Return the feature gates of the emulated version, with those that the flags switch."""
    version = flags.text("emulated-version")
    try:
        behaviour_of(version)
    except MoorageError as error:
        raise MoorageError(f"--emulated-version: {error}") from error
    return FeatureGates.parse(flags.text("feature-gates"), version)


def _election(election: LeaderElection, flags: Flags) -> LeaderElection:
    """Apply the given flags, which take precedence over the file, as in kube-scheduler."""
    changed = structs.replace(election, **flags.options("election", given=True))
    if changed.leader_elect and changed.resource_lock != "leases":
        raise MoorageError(f'--leader-elect-resource-lock: "{changed.resource_lock}" is not supported; use "leases"')
    return changed


def policy_of(flags: Flags, gates: FeatureGates) -> ConvertedPolicy | None:
    """Return the Policy that the flags name, converted; None if they name none."""
    named = [f"--{name}" for name in POLICY_SOURCES if flags.text(name)]
    if len(named) > 1:
        raise MoorageError(f"{' and '.join(named)} exclude each other: name one configuration")
    if path := flags.text("policy-config-file"):
        return convert_policy(read_file(Path(path)), source=path, gates=gates)
    if name := flags.text("policy-configmap"):
        where = f"configmap {flags.text('policy-configmap-namespace')}/{name}"
        text = asyncio.run(_read_config_map(flags, where))
        return convert_policy(text, source=f"{where}, {POLICY_KEY}", gates=gates)
    return None


async def _read_config_map(flags: Flags, where: str) -> str:
    credentials = await connection.find(flags.text("kubeconfig"))
    if master := flags.text("master"):
        credentials = dataclasses.replace(credentials, server=master)
    client = connection.connect(credentials, SystemClock(), user_agent=connection.default_user_agent())
    name, namespace = flags.text("policy-configmap"), flags.text("policy-configmap-namespace")
    try:
        found = await client.get(CONFIG_MAPS, name, namespace)
    except MoorageError as error:
        raise MoorageError(f"--policy-configmap: cannot read {where}: {error}") from error
    finally:
        await client.close()
    text = found.get("data", POLICY_KEY, default=None) if isinstance(found, Unstructured) else None
    if not isinstance(text, str):
        raise MoorageError(f"--policy-configmap: {where} does not have the key {POLICY_KEY} with the Policy")
    return text


def options_of(flags: Flags) -> RunOptions:
    """Return all other options."""
    return RunOptions(
        **flags.options("run"),
        gates=gates_of(flags),
        serving=_serving(flags),
        flags=flags.everything(),
        source=_source(flags),
    )


def _source(flags: Flags) -> ConfigurationSource | None:
    """Return where the configuration is reloaded from: its file, or on request a Policy in a ConfigMap. A
    configuration that is sent is read with the same flags."""
    files = [Path(path) for name in ("config", "policy-config-file") if (path := flags.text(name))]
    plugins = flags.boolean("reload-plugins")
    changes = flags.boolean("allow-configuration-changes")
    if not files and not plugins and not flags.text("policy-configmap") and not changes:
        return None
    return ConfigurationSource(
        lambda: configuration_of(flags), tuple(files), plugins, lambda text, known: configuration_of(flags, text, known)
    )


COORDINATED = "CoordinatedLeaderElection"
"""The gate with which the API server chooses the leader."""


def gate_warnings(gates: FeatureGates) -> list[str]:
    """Return warnings for switched gates that affect the configuration only."""
    chosen = {name: on for name, on in gates.chosen.items() if name != COORDINATED}
    switched = [name for name, on in chosen.items() if on != gates.known[name].default]
    return [
        f"--feature-gates: {name} changes which plugins and arguments are defaults, and nothing else yet"
        for name in switched
    ]


def _serving(flags: Flags) -> ServingOptions:
    name = "port" if flags.number("port") else "secure-port"
    port = flags.number(name)
    if not 0 <= port <= 65535:
        raise MoorageError(f"--{name}: {port} is not a port; expected a number from 0 to 65535")
    if flags.has("secure-port") and port != flags.number("secure-port"):
        raise MoorageError("--port and --secure-port name different ports; drop --port")
    if flags.has("tls-cert-file") != flags.has("tls-private-key-file"):
        raise MoorageError("--tls-cert-file and --tls-private-key-file belong together: set both or none")
    if flags.boolean("allow-configuration-changes") and flags.boolean("insecure-skip-authentication"):
        raise MoorageError(
            "--allow-configuration-changes needs authenticated users: drop --insecure-skip-authentication"
        )
    if flags.text("tls-min-version") not in ("VersionTLS12", "VersionTLS13"):
        raise MoorageError("--tls-min-version: expected VersionTLS12 or VersionTLS13")
    return ServingOptions(port=port, **flags.options("serving"))
