"""What `moorage run` is made of: the options beyond the configuration file, and both from the flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from moorage.api.errors import MoorageError
from moorage.app.configuration import (
    EMPTY,
    Configuration,
    configure,
    configure_file,
    find_plugin,
    plugin_folders,
)
from moorage.app.reloading import SENT, ConfigurationSource
from moorage.config.gates import DEFAULT_GATES, GATES, FeatureGates
from moorage.config.types import ClientConnection, LeaderElection
from moorage.framework.points import Plugin
from moorage.run.flags import Flags
from moorage.run.policy_source import policy_of

HEALTH_PATHS = ("/healthz", "/readyz", "/livez")


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The HTTPS endpoints. Port 0 serves nothing."""

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
    """Empty: the scheduler's own credentials."""
    authorization_kubeconfig: str = ""
    skip_authentication: bool = False
    """Every caller may read everything; for machines where no one else reaches the port."""
    skip_client_ca_lookup: bool = False
    """Do not read the client CA of the cluster; tokens are reviewed all the same."""
    tolerate_lookup_failure: bool = False
    """Start without the cluster's client CA when it cannot be read."""
    token_cache_seconds: float = 10.0
    allow_cache_seconds: float = 10.0
    deny_cache_seconds: float = 10.0
    always_allow_paths: tuple[str, ...] = HEALTH_PATHS
    configuration_changes: bool = False
    """Whoever may `post` /moorage/v1/configuration may change what the scheduler does."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything that is not in the KubeSchedulerConfiguration."""

    kubeconfig: str = ""
    """Empty: what the configuration names, else KUBECONFIG, the pod's own credentials, ~/.kube/config."""
    master: str = ""
    """Another address of the API server than the credentials have."""
    gates: FeatureGates = DEFAULT_GATES
    flush_after: float = 300.0
    """Seconds until a parked pod is tried again without a reason."""
    serving: ServingOptions = field(default_factory=ServingOptions)
    identity: str = ""
    """In the lease; made up when empty."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Every flag with its value, for /flagz."""
    disabled_metrics: frozenset[str] = frozenset()
    source: ConfigurationSource | None = None
    """What the configuration is loaded from when it changes; None: it does not."""


def configuration_of(
    flags: Flags, sent: str | None = None, known: Sequence[type[Plugin]] = ()
) -> Configuration:
    """The configuration file with what flags say on top; ConfigError or MoorageError where it is wrong.
    `sent` is instead of the file, and may name the plugins that are `known`."""
    folders = plugin_folders(flags.items("plugin-path"))
    plugins = [find_plugin(reference, folders) for reference in flags.items("plugin")]
    gates = FeatureGates.parse(flags.text("feature-gates"))
    if sent is not None:
        found = configure(sent, plugins=known, source=SENT, gates=gates)
    elif policy := policy_of(flags, gates):
        found = configure(policy.text, plugins=plugins, source="the Policy", gates=gates)
        notes = (*policy.notes, *found.config.notes)
        found = replace(found, config=structs.replace(found.config, notes=notes))
    elif path := flags.text("config"):
        found = configure_file(Path(path), plugins=plugins, gates=gates, folders=folders)
    else:
        found = configure(EMPTY, plugins=plugins, source="the default configuration", gates=gates)
    if name := flags.given.get("scheduler-name"):
        found = found.with_scheduler_name(name)
    election = _election(found.config.leader_election, flags)
    connection = _connection(found.config.client_connection, flags)
    config = structs.replace(found.config, leader_election=election, client_connection=connection)
    return replace(found, config=config)


def _election(election: LeaderElection, flags: Flags) -> LeaderElection:
    """Flags that were given win over the file, as with kube-scheduler."""
    changes: dict[str, object] = {}
    if flags.has("leader-elect"):
        changes["leader_elect"] = flags.boolean("leader-elect")
    for name in ("lease-duration", "renew-deadline", "retry-period"):
        if flags.has(f"leader-elect-{name}"):
            changes[name.replace("-", "_")] = flags.seconds(f"leader-elect-{name}")
    for name in ("name", "namespace"):
        if flags.has(f"lock-object-{name}"):
            changes[f"resource_{name}"] = flags.text(f"lock-object-{name}")
    for name in ("resource-lock", "resource-name", "resource-namespace"):
        if flags.has(f"leader-elect-{name}"):
            changes[name.replace("-", "_")] = flags.text(f"leader-elect-{name}")
    changed = structs.replace(election, **changes)
    if changed.leader_elect and changed.resource_lock != "leases":
        raise MoorageError(
            f'--leader-elect-resource-lock: "{changed.resource_lock}" is not supported; use "leases"'
        )
    return changed


def _connection(connection: ClientConnection, flags: Flags) -> ClientConnection:
    changes: dict[str, object] = {}
    if not flags.has("config"):
        if flags.has("kube-api-qps"):
            changes["qps"] = flags.real("kube-api-qps")
        if flags.has("kube-api-burst"):
            changes["burst"] = flags.number("kube-api-burst")
    return structs.replace(connection, **changes)


def options_of(flags: Flags) -> RunOptions:
    """Everything else."""
    return RunOptions(
        kubeconfig=flags.text("kubeconfig"),
        master=flags.text("master"),
        gates=FeatureGates.parse(flags.text("feature-gates")),
        flush_after=flags.seconds("pod-max-in-unschedulable-pods-duration"),
        serving=_serving(flags),
        disabled_metrics=frozenset(flags.items("disabled-metrics")),
        flags=flags.everything(),
        source=_source(flags),
    )


def _source(flags: Flags) -> ConfigurationSource | None:
    """The configuration's own file; a Policy in a ConfigMap is read again when that is asked for. One that is
    sent is read with the same flags."""
    files = [Path(path) for name in ("config", "policy-config-file") if (path := flags.text(name))]
    plugins = flags.boolean("reload-plugins")
    changes = flags.boolean("allow-configuration-changes")
    if not files and not plugins and not flags.text("policy-configmap") and not changes:
        return None
    return ConfigurationSource(
        lambda: configuration_of(flags),
        tuple(files),
        plugins,
        lambda text, known: configuration_of(flags, text, known),
    )


def gate_warnings(gates: FeatureGates) -> list[str]:
    """What a user who switches gates must know: they decide about the configuration only."""
    switched = [name for name, on in gates.chosen.items() if on != GATES[name].default]
    return [
        f"--feature-gates: {name} changes which plugins and arguments are defaults, and nothing else yet"
        for name in switched
    ]


def _serving(flags: Flags) -> ServingOptions:
    name = "port" if flags.number("port") else "secure-port"
    port = flags.number(name)
    if not 0 <= port <= 65535:
        raise MoorageError(f"--{name}: {port} is no port; write a number from 0 to 65535")
    if flags.has("secure-port") and port != flags.number("secure-port"):
        raise MoorageError("--port and --secure-port name two ports, and there is one: drop --port")
    if flags.has("tls-cert-file") != flags.has("tls-private-key-file"):
        raise MoorageError("--tls-cert-file and --tls-private-key-file go together: set both or none")
    if flags.boolean("allow-configuration-changes") and flags.boolean("insecure-skip-authentication"):
        raise MoorageError(
            "--allow-configuration-changes needs to know who changes: drop --insecure-skip-authentication"
        )
    if flags.text("tls-min-version") not in ("VersionTLS12", "VersionTLS13"):
        raise MoorageError("--tls-min-version: write VersionTLS12 or VersionTLS13")
    return ServingOptions(
        bind_address=flags.text("bind-address"),
        port=port,
        cert_file=flags.text("tls-cert-file"),
        key_file=flags.text("tls-private-key-file"),
        cert_dir=flags.text("cert-dir"),
        min_version=flags.text("tls-min-version"),
        cipher_suites=flags.items("tls-cipher-suites"),
        client_ca_file=flags.text("client-ca-file"),
        authentication_kubeconfig=flags.text("authentication-kubeconfig"),
        authorization_kubeconfig=flags.text("authorization-kubeconfig"),
        skip_authentication=flags.boolean("insecure-skip-authentication"),
        skip_client_ca_lookup=flags.boolean("authentication-skip-lookup"),
        tolerate_lookup_failure=flags.boolean("authentication-tolerate-lookup-failure"),
        token_cache_seconds=flags.seconds("authentication-token-webhook-cache-ttl"),
        allow_cache_seconds=flags.seconds("authorization-webhook-cache-authorized-ttl"),
        deny_cache_seconds=flags.seconds("authorization-webhook-cache-unauthorized-ttl"),
        always_allow_paths=flags.items("authorization-always-allow-paths"),
        configuration_changes=flags.boolean("allow-configuration-changes"),
    )
