"""Notices when another scheduler's bind leaves a node with more requested than it has.

Two schedulers on the same nodes cannot exclude that: each binds by what its watch has shown it. It is seen
when the watch shows the other's pod, reported in the log, in an event and in a metric; the kubelet decides
the rest."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.api.requests import PODS
from moorage.framework.ports import EventRecorder
from moorage.state.cache import ClusterCache
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

REASON = "NodeOvercommitted"


class OvercommitWatch:
    """Asked about every pod that appears on a node without our doing."""

    def __init__(
        self,
        cache: ClusterCache,
        recorder: EventRecorder,
        controller: str,
        metrics: SchedulerMetrics | None = None,
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._controller = controller
        self._metrics = metrics

    def appeared(self, pod: Pod) -> None:
        """Look at the node that a pod was bound to by another scheduler."""
        table, amounts = self._cache.table, self._cache.table.amounts
        row = table.row_of(pod.spec.node_name)
        if row < 0:
            return
        asked = (*self._cache.entry(pod).requests, PODS)
        over = {
            resource: (int(amounts.requested(resource)[row]), int(amounts.allocatable(resource)[row]))
            for resource in asked
            if amounts.requested(resource)[row] > amounts.allocatable(resource)[row]
        }
        if over:
            self._report(pod, over)

    def _report(self, pod: Pod, over: dict[str, tuple[int, int]]) -> None:
        summary = ", ".join(f"{name} {have} of {most}" for name, (have, most) in sorted(over.items()))
        _log.warning(
            "Node overcommitted by another scheduler", node=pod.spec.node_name, pod=pod, requested=summary
        )
        if self._metrics is not None:
            for resource in over:
                self._metrics.overcommits.inc(resource)
        self._recorder.event(
            pod,
            type="Warning",
            reason=REASON,
            action="Binding",
            note=f"Node {pod.spec.node_name} is overcommitted since this pod was bound to it: "
            f"requested {summary}",
            controller=self._controller,
        )
