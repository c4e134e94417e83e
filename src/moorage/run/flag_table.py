"""The flags of `moorage run`: those of kube-scheduler 1.36, and a few of its own. Data only.

A flag whose `note` is set is known but does nothing here: it is accepted with that note as a warning, or
refused where ignoring it would leave a user with less protection than was asked for.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """What a value looks like."""

    TEXT = "string"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    DURATION = "duration"
    LIST = "strings"
    """Separated by commas; the flag may be repeated."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `default` is written as a user would."""

    name: str
    kind: Kind
    default: str
    help: str
    note: str = ""
    refused: bool = False


_T, _B, _I, _F, _D, _L = Kind.TEXT, Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.DURATION, Kind.LIST
_HTTP1 = "the endpoints speak HTTP/1.1 only"
_JSON = "objects are read and written as JSON"
_PROXY = "front proxies are not trusted: authenticate with a token or a client certificate"
_LOGS = "lines are written at once, to standard error"


def _ignored(name: str, kind: Kind, default: str, note: str) -> Flag:
    return Flag(name, kind, default, "", note)


def _refused(name: str, kind: Kind, default: str, note: str) -> Flag:
    return Flag(name, kind, default, "", note, refused=True)


GROUPS: dict[str, tuple[Flag, ...]] = {
    "Misc": (
        Flag(
            "config", _T, "", "A KubeSchedulerConfiguration, YAML or JSON. Without it: the default profile."
        ),
        Flag(
            "write-config-to",
            _T,
            "",
            "Write the completed configuration there, - for standard output, and stop.",
        ),
        Flag("master", _T, "", "The address of the API server, instead of the one in the credentials."),
        Flag(
            "kubeconfig",
            _T,
            "",
            "Credentials; wins over clientConnection.kubeconfig. Else KUBECONFIG, or the pod's own.",
        ),
        Flag("plugin", _L, "", "Make a plugin known by its name: module:Class. Repeatable."),
        Flag(
            "plugin-path",
            _L,
            "",
            "A folder in which module:Class is looked for, after everything installed. Repeatable.",
        ),
        Flag(
            "reload-plugins",
            _B,
            "false",
            "Import plugins anew when their source files change. For development.",
        ),
        Flag(
            "allow-configuration-changes",
            _B,
            "false",
            "Take configurations that are posted to /moorage/v1/configuration.",
        ),
        Flag(
            "pod-max-in-unschedulable-pods-duration",
            _D,
            "5m0s",
            "After so long a parked pod is tried again without a reason; 0 switches that off.",
        ),
        Flag("version", _B, "false", "Print the version and stop."),
        Flag("help", _B, "false", "Print this and stop."),
    ),
    "Secure serving": (
        Flag(
            "bind-address",
            _T,
            "127.0.0.1",
            "Where the HTTPS endpoints listen. kube-scheduler's default is 0.0.0.0.",
        ),
        Flag("secure-port", _I, "10259", "The port of the HTTPS endpoints; 0 serves none."),
        Flag(
            "tls-cert-file",
            _T,
            "",
            "Certificate (PEM, with its chain), read again when it changes. Else one is made.",
        ),
        Flag("tls-private-key-file", _T, "", "Its private key."),
        Flag(
            "cert-dir",
            _T,
            "",
            "Where kube-scheduler.crt and kube-scheduler.key are, or are made when they are missing.",
        ),
        Flag("tls-min-version", _T, "VersionTLS12", "VersionTLS12 or VersionTLS13."),
        Flag("tls-cipher-suites", _L, "", "Names of TLS 1.2 cipher suites to allow."),
        _refused("tls-sni-cert-key", _L, "", "one certificate is served; put all names into it"),
        _ignored("http2-max-streams-per-connection", _I, "0", _HTTP1),
        _ignored("disable-http2-serving", _B, "false", _HTTP1),
        _refused("permit-port-sharing", _B, "false", "a port belongs to one process"),
        _refused("permit-address-sharing", _B, "false", "a port belongs to one process"),
    ),
    "Authentication of the endpoints": (
        Flag(
            "authentication-kubeconfig",
            _T,
            "",
            "Credentials for TokenReviews. Without it: the scheduler's own.",
        ),
        Flag(
            "authentication-skip-lookup",
            _B,
            "false",
            "Do not read the cluster's client CA (configmap extension-apiserver-authentication).",
        ),
        Flag(
            "authentication-tolerate-lookup-failure",
            _B,
            "false",
            "Start although the client CA cannot be read; client certificates are not accepted then.",
        ),
        Flag(
            "authentication-token-webhook-cache-ttl", _D, "10s", "How long the answer about a token is kept."
        ),
        Flag("client-ca-file", _T, "", "Accept client certificates that these CAs signed."),
        Flag(
            "insecure-skip-authentication",
            _B,
            "false",
            "Let every caller that reaches the port read metrics, configuration and records.",
        ),
        _refused("requestheader-client-ca-file", _T, "", _PROXY),
        _refused("requestheader-allowed-names", _L, "", _PROXY),
        _refused("requestheader-username-headers", _L, "", _PROXY),
        _refused("requestheader-uid-headers", _L, "", _PROXY),
        _refused("requestheader-group-headers", _L, "", _PROXY),
        _refused("requestheader-extra-headers-prefix", _L, "", _PROXY),
    ),
    "Authorization of the endpoints": (
        Flag(
            "authorization-kubeconfig",
            _T,
            "",
            "Credentials for SubjectAccessReviews. Without it: the scheduler's own.",
        ),
        Flag(
            "authorization-always-allow-paths",
            _L,
            "/healthz,/readyz,/livez",
            "Paths that every caller may read; one that ends with * stands for all that begin so.",
        ),
        Flag("authorization-webhook-cache-authorized-ttl", _D, "10s", "How long a yes is kept."),
        Flag("authorization-webhook-cache-unauthorized-ttl", _D, "10s", "How long a no is kept."),
    ),
    "Leader election": (
        Flag("leader-elect", _B, "true", "Schedule only while holding the lease."),
        Flag(
            "leader-elect-lease-duration",
            _D,
            "15s",
            "How long others wait after the last renewal that they saw.",
        ),
        Flag("leader-elect-renew-deadline", _D, "10s", "How long a leader may act after its last renewal."),
        Flag("leader-elect-retry-period", _D, "2s", "Between two tries."),
        Flag("leader-elect-resource-lock", _T, "leases", "Only leases are supported."),
        Flag("leader-elect-resource-name", _T, "kube-scheduler", "The name of the lease."),
        Flag("leader-elect-resource-namespace", _T, "kube-system", "Its namespace."),
    ),
    "Feature gates": (
        Flag(
            "feature-gates", _L, "", "Name=true or Name=false, of the gates of 1.36 that a scheduler reads."
        ),
        _refused("emulated-version", _L, "", "only the behaviour of 1.36 is implemented"),
        _refused("min-compatibility-version", _L, "", "only the behaviour of 1.36 is implemented"),
    ),
    "Metrics": (
        Flag("disabled-metrics", _L, "", "Full names of metrics that are left out."),
        _ignored("show-hidden-metrics-for-version", _T, "", "no metric is hidden"),
        _refused(
            "allow-metric-labels",
            _L,
            "",
            "labels cannot be restricted; leave a metric out with --disabled-metrics",
        ),
        _refused(
            "allow-metric-labels-manifest",
            _T,
            "",
            "labels cannot be restricted; leave a metric out with --disabled-metrics",
        ),
    ),
    "Logs": (
        Flag(
            "v",
            _I,
            "0",
            "How much to log: 0 for operators, 2 for state changes, 3 for every attempt, 10 for all.",
        ),
        Flag("logging-format", _T, "text", "text or json."),
        _ignored("vmodule", _T, "", "verbosity is one number for all modules: use -v"),
        _ignored("log-flush-frequency", _D, "5s", _LOGS),
        _ignored("log-json-info-buffer-size", _T, "0", _LOGS),
        _ignored("log-json-split-stream", _B, "false", _LOGS),
        _ignored("log-text-info-buffer-size", _T, "0", _LOGS),
        _ignored("log-text-split-stream", _B, "false", _LOGS),
    ),
    "Legacy Policy": (
        Flag(
            "policy-config-file",
            _T,
            "",
            "A Policy (Kubernetes up to 1.22), JSON or YAML, in place of --config.",
        ),
        Flag(
            "policy-configmap", _T, "", "A ConfigMap whose key policy.cfg has the Policy, read once at start."
        ),
        Flag("policy-configmap-namespace", _T, "kube-system", "Its namespace."),
    ),
    "Deprecated": (
        Flag("scheduler-name", _T, "default-scheduler", "The schedulerName of the only profile."),
        Flag("lock-object-name", _T, "kube-scheduler", "The old form of --leader-elect-resource-name."),
        Flag(
            "lock-object-namespace", _T, "kube-system", "The old form of --leader-elect-resource-namespace."
        ),
        Flag("port", _I, "0", "The old form of --secure-port; HTTPS is served there as well."),
        Flag("kube-api-qps", _F, "50", "Requests per second; ignored with --config."),
        Flag("kube-api-burst", _I, "100", "Requests at once; ignored with --config."),
        _ignored("kube-api-content-type", _T, "application/vnd.kubernetes.protobuf", _JSON),
        _ignored("profiling", _B, "true", "there are no profiling endpoints"),
        _ignored("contention-profiling", _B, "true", "there are no profiling endpoints"),
    ),
}

FLAGS: dict[str, Flag] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
SHORT = {"v": "v", "h": "help"}
