"""The flags of `moorage run`: those of kube-scheduler 1.37, and a few of Moorage. Data only.

A row names the option that its value goes to (`options.py` fills the options from this table). A flag with a
`note` has no effect here: it is accepted with that note as a warning, or refused if ignoring it would leave
the user with less protection than requested.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import partial


class FlagKind(enum.Enum):
    """The type of a value."""

    TEXT = "string"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    DURATION = "duration"
    LIST = "strings"
    """Separated by commas; the flag may be repeated."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `default` is written as a user would write it."""

    name: str
    kind: FlagKind
    default: str
    help: str = ""
    to: str = ""
    """The option that the value goes to, as `group.field`. If two given flags go to the same option, the one
    that comes first in the table wins."""
    note: str = ""
    refused: bool = False


_T, _B, _I, _F, _D, _L = (FlagKind.TEXT, FlagKind.BOOL, FlagKind.INT, FlagKind.FLOAT, FlagKind.DURATION, FlagKind.LIST)


def _ignored(note: str, kind: FlagKind, default: str, *names: str, refused: bool = False) -> tuple[Flag, ...]:
    return tuple(Flag(name, kind, default, note=note, refused=refused) for name in names)


_refused = partial(_ignored, refused=True)

# fmt: off
GROUPS: dict[str, tuple[Flag, ...]] = {
    "Misc": (
        Flag("config", _T, "",
             help="KubeSchedulerConfiguration file, YAML or JSON. Default: the default profile."),
        Flag("write-config-to", _T, "",
             help="Write the completed configuration to a file (- for stdout) and exit."),
        Flag("master", _T, "", "API server address; overrides the one in the credentials.", "run.master"),
        Flag("kubeconfig", _T, "", to="run.kubeconfig",
             help="Credentials; override clientConnection.kubeconfig. Default: KUBECONFIG or the pod's own."),
        Flag("plugin", _L, "", "Register a plugin, as module:Class. Repeatable."),
        Flag("plugin-path", _L, "",
             help="Folder to import module:Class from, after installed modules. Repeatable."),
        Flag("reload-plugins", _B, "false",
             help="Reload plugins when their source files change. For development."),
        Flag("allow-configuration-changes", _B, "false", to="serving.configuration_changes",
             help="Accept configurations that are posted to /moorage/v1/configuration."),
        Flag("pod-max-in-unschedulable-pods-duration", _D, "5m0s", to="run.flush_after",
             help="Retry an unschedulable pod after this time even without an event; 0 switches that off."),
        Flag("version", _B, "false", "Print the version and exit."),
        Flag("help", _B, "false", "Print this help and exit."),
    ),
    "Secure serving": (
        Flag("bind-address", _T, "127.0.0.1", to="serving.bind_address",
             help="Address of the HTTPS endpoints. The default of kube-scheduler is 0.0.0.0."),
        Flag("secure-port", _I, "10259", "Port of the HTTPS endpoints; 0 serves none."),
        Flag("tls-cert-file", _T, "", to="serving.cert_file",
             help="Certificate chain (PEM), reloaded when it changes. Default: a self-signed certificate."),
        Flag("tls-private-key-file", _T, "", "Private key of the certificate.", "serving.key_file"),
        Flag("cert-dir", _T, "", to="serving.cert_dir",
             help="Folder of kube-scheduler.crt and kube-scheduler.key, created if they are missing."),
        Flag("tls-min-version", _T, "VersionTLS12", "VersionTLS12 or VersionTLS13.", "serving.min_version"),
        Flag("tls-cipher-suites", _L, "", "TLS 1.2 cipher suites to allow.", "serving.cipher_suites"),
        *_refused("one certificate is served; put all names into it", _L, "", "tls-sni-cert-key"),
        *_ignored("the endpoints speak HTTP/1.1 only", _I, "0", "http2-max-streams-per-connection"),
        *_ignored("the endpoints speak HTTP/1.1 only", _B, "false", "disable-http2-serving"),
        *_refused("a port belongs to one process", _B, "false",
                  "permit-port-sharing", "permit-address-sharing"),
    ),
    "Authentication of the endpoints": (
        Flag("authentication-kubeconfig", _T, "", to="serving.authentication_kubeconfig",
             help="Credentials for TokenReviews. Default: those of the scheduler."),
        Flag("authentication-skip-lookup", _B, "false", to="serving.skip_client_ca_lookup",
             help="Do not read the cluster's client CA (configmap extension-apiserver-authentication)."),
        Flag("authentication-tolerate-lookup-failure", _B, "false", to="serving.tolerate_lookup_failure",
             help="Start even if the client CA cannot be read; then client certificates are not accepted."),
        Flag("authentication-token-webhook-cache-ttl", _D, "10s", to="serving.token_cache_seconds",
             help="How long the result of a TokenReview is cached."),
        Flag("client-ca-file", _T, "", to="serving.client_ca_file",
             help="Accept client certificates that these authorities signed."),
        Flag("insecure-skip-authentication", _B, "false", to="serving.skip_authentication",
             help="Let every client that reaches the port read metrics, configuration and records."),
        *_refused("front proxies are not trusted: authenticate with a token or a client certificate", _L, "",
                  "requestheader-client-ca-file", "requestheader-allowed-names",
                  "requestheader-username-headers", "requestheader-uid-headers",
                  "requestheader-group-headers", "requestheader-extra-headers-prefix"),
    ),
    "Authorization of the endpoints": (
        Flag("authorization-kubeconfig", _T, "", to="serving.authorization_kubeconfig",
             help="Credentials for SubjectAccessReviews. Default: those of the scheduler."),
        Flag("authorization-always-allow-paths", _L, "/healthz,/readyz,/livez",
             to="serving.always_allow_paths",
             help="Paths that every client may read; a path that ends with * matches as a prefix."),
        Flag("authorization-webhook-cache-authorized-ttl", _D, "10s", to="serving.allow_cache_seconds",
             help="How long a positive answer is cached."),
        Flag("authorization-webhook-cache-unauthorized-ttl", _D, "10s", to="serving.deny_cache_seconds",
             help="How long a negative answer is cached."),
    ),
    "Leader election": (
        Flag("leader-elect", _B, "true", "Schedule only while holding the lease.", "election.leader_elect"),
        Flag("leader-elect-lease-duration", _D, "15s", to="election.lease_duration",
             help="How long other replicas wait after the last renewal that they saw."),
        Flag("leader-elect-renew-deadline", _D, "10s", to="election.renew_deadline",
             help="How long a leader may act after its last renewal."),
        Flag("leader-elect-retry-period", _D, "2s", "Time between two tries.", "election.retry_period"),
        Flag("leader-elect-resource-lock", _T, "leases", to="election.resource_lock",
             help="Only leases are supported."),
        Flag("leader-elect-resource-name", _T, "kube-scheduler", to="election.resource_name",
             help="Name of the lease."),
        Flag("leader-elect-resource-namespace", _T, "kube-system", to="election.resource_namespace",
             help="Namespace of the lease."),
    ),
    "Feature gates": (
        Flag("feature-gates", _L, "", "Name=true or Name=false, for the scheduler's feature gates."),
        Flag("emulated-version", _L, "",
             "Answer as kube-scheduler of this version, 1.36 or 1.37, not only with its feature gates."),
        *_refused("the version of --emulated-version is followed exactly", _L, "", "min-compatibility-version"),
    ),
    "Metrics": (
        Flag("disabled-metrics", _L, "", "Full names of metrics to leave out.", "run.disabled_metrics"),
        *_ignored("no metric is hidden", _T, "", "show-hidden-metrics-for-version"),
        *_refused("labels cannot be restricted; leave a metric out with --disabled-metrics", _L, "",
                  "allow-metric-labels", "allow-metric-labels-manifest"),
    ),
    "Logs": (
        Flag("v", _I, "0", "Verbosity: 0 for operators, 2 state changes, 3 every attempt, 10 all."),
        Flag("logging-format", _T, "text", "text or json."),
        *_ignored("verbosity is one number for all modules: use -v", _T, "", "vmodule"),
        *_ignored("lines are written at once, to standard error", _D, "5s", "log-flush-frequency"),
        *_ignored("lines are written at once, to standard error", _T, "0",
                  "log-json-info-buffer-size", "log-text-info-buffer-size"),
        *_ignored("lines are written at once, to standard error", _B, "false",
                  "log-json-split-stream", "log-text-split-stream"),
    ),
    "Legacy Policy": (
        Flag("policy-config-file", _T, "",
             help="Policy (Kubernetes up to 1.22), JSON or YAML; replaces --config."),
        Flag("policy-configmap", _T, "", "ConfigMap with the Policy in its key policy.cfg, read at start."),
        Flag("policy-configmap-namespace", _T, "kube-system", "Namespace of the ConfigMap."),
    ),
    "Deprecated": (
        Flag("scheduler-name", _T, "default-scheduler", "schedulerName of the only profile."),
        Flag("lock-object-name", _T, "kube-scheduler", to="election.resource_name",
             help="Old form of --leader-elect-resource-name."),
        Flag("lock-object-namespace", _T, "kube-system", to="election.resource_namespace",
             help="Old form of --leader-elect-resource-namespace."),
        Flag("port", _I, "0", "Old form of --secure-port; it serves HTTPS too."),
        Flag("kube-api-qps", _F, "50", "Requests per second; ignored with --config.", "connection.qps"),
        Flag("kube-api-burst", _I, "100", "Requests at once; ignored with --config.", "connection.burst"),
        *_ignored("objects are read and written as JSON", _T, "application/vnd.kubernetes.protobuf",
                  "kube-api-content-type"),
        Flag("profiling", _B, "true", "Serve /debug/pprof and /debug/flags/v; ignored with --config.",
             "debugging.enable_profiling"),
        *_ignored("locks are not measured", _B, "true", "contention-profiling"),
    ),
}
# fmt: on

FLAGS: dict[str, Flag] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
SHORT = {"v": "v", "h": "help"}
