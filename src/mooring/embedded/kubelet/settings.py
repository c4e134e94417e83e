"""How the kubelet stand-in behaves where no annotation says otherwise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """Times in seconds."""

    start_seconds: tuple[float, float] = (0.3, 0.9)
    """From admission to the first container running: drawn from this range by the pod's UID."""
    init_seconds: float = 0.2
    """How long each init container runs."""
    ready_seconds: float = 0.0
    """From running to ready."""
    stop_seconds: float = 0.5
    """How long a pod takes to stop, within its grace period."""
    job_run_seconds: float = 5.0
    """How long pods of Jobs run; all others run until they are deleted."""
    crash_backoff: tuple[float, float] = (10.0, 300.0)
    """The first and the longest pause before a container that ended is started again."""

    heartbeat_seconds: float = 10.0
    """Between two renewals of a node's lease, in clusters of up to `heartbeats_per_second` times as many
    nodes.
    """
    heartbeats_per_second: float = 200.0
    """Renewals of all nodes together; larger clusters renew less often."""
    lease_seconds: int = 40
    """The least leaseDurationSeconds."""

    writes_per_second: float = 500.0
    """Pod status writes of all nodes together, so that starting pods leaves room for scheduling others."""
    busy_backlog: int = 200
    """With more pods than this waiting for a write, the step ContainerCreating is left out."""
    workers: int = 16
    """Writes under way at the same time."""

    usage_fraction: float = 0.4
    """Simulated usage, as a fraction of what a pod requests."""
    usage_noise: float = 0.25
    """How far usage strays from that, in both directions, as a fraction of it."""

    node_selector: str = ""
    """Only nodes with these labels are simulated; empty: all."""
    version: str = "v1.36.0"
    """The kubelet version that nodes report."""
