"""What `mooring run` was asked for, beyond the configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.config.gates import DEFAULT_GATES, FeatureGates

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
    """Everybody may read everything; for machines where nobody else can reach the port."""
    skip_client_ca_lookup: bool = False
    """Do not read the client CA of the cluster; tokens are reviewed all the same."""
    tolerate_lookup_failure: bool = False
    """Start without the cluster's client CA when it cannot be read."""
    token_cache_seconds: float = 10.0
    allow_cache_seconds: float = 10.0
    deny_cache_seconds: float = 10.0
    always_allow_paths: tuple[str, ...] = HEALTH_PATHS


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
