"""Find the plugins to notify of a pod that is added or removed in a dry run, and the answers that this may change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.framework._contract import writes
from moorage.framework.access import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import HeadroomFilterPlugin
from moorage.framework.nodes import BoolArray, IntArray, NodeView
from moorage.framework.optional import reads_of
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import SUCCESS, Status
from moorage.runtime.calling import checked, failed
from moorage.runtime.profile import Profile
from moorage.state.ranking import LowerPods, VictimColumns


class PodKinds:
    """Numbers for pods by the fields that `concerns` may read: equal numbers give equal answers. There is one per
    process."""

    _LIMIT = 100_000

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._last = 0

    def of(self, pods: LowerPods) -> IntArray:
        """Return the kinds of some pods, in order."""
        return np.array([self._kind(pod) for pod in pods], dtype=np.int64)

    def _kind(self, pod: Pod) -> int:
        spec = pod.spec
        claims = any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in spec.volumes)
        if spec.affinity is not None or claims:
            return self._next()  # hard to compare, so this pod is a kind of its own
        key = (pod.namespace, tuple(pod.labels.items()), pod.is_terminating)
        if key not in self._known:
            if len(self._known) >= self._LIMIT:
                self._known.clear()  # numbers are never used twice
            self._known[key] = self._next()
        return self._known[key]

    def _next(self) -> int:
        self._last += 1
        return self._last


class DryRunPlugins:
    """The plugins of a profile that judge one pod in a dry run, by what their answers depend on."""

    def __init__(self, profile: Profile, pod: Pod, state: CycleState) -> None:
        self.profile, self.pod, self.state = profile, pod, state
        skipped = state.skip_filter
        self.filters = [plugin for plugin in profile.filter if plugin.name not in skipped]
        self.extended = [p for p in profile.pre_filter if p.name not in skipped and is_extended(p)]
        """Plugins with AddPod or RemovePod (Go: PreFilterExtensions), in their order."""
        reads = {plugin.name: reads_of(plugin, pod) for plugin in self.filters}
        extended = {plugin.name for plugin in self.extended}
        self.cluster_wide = {n for n, read in reads.items() if read is None or Reads.PODS in read or n in extended}
        """Filters whose answers change with the cycle state."""
        self.by_row = {name for name, read in reads.items() if read is None or Reads.ROW in read}
        """Filters whose answers change with the row."""
        self.by_sums = {
            p.name for p in self.filters if p.name not in self.cluster_wide and isinstance(p, HeadroomFilterPlugin)
        }
        """Filters that read nothing of the row but sums of requests."""
        shared = profile.services.shared
        self._kinds: PodKinds = shared.setdefault(PodKinds, PodKinds())

    def concerned(self, victims: VictimColumns) -> list[BoolArray]:
        """Return per extended plugin the victims whose removal or return it must be notified of."""
        if not self.extended:
            return []
        kinds = victims.derived(PodKinds, self._kinds.of)
        _, first, inverse = np.unique(kinds, return_index=True, return_inverse=True)
        samples = victims.pods(first)
        return [np.array(self._answers(plugin, samples), dtype=np.bool_)[inverse] for plugin in self.extended]

    def _answers(self, plugin: PreFilterPlugin, others: Sequence[Pod]) -> list[bool]:
        concerns, state, pod = plugin.concerns, self.state, self.pod
        return [concerns(state, pod, other) for other in others]

    def notify(
        self, plugins: Sequence[PreFilterPlugin], state: CycleState, other: Pod, node: NodeView, *, added: bool
    ) -> Status:
        """Notify plugins that `other` was added to the node or removed; stop at the first failure."""
        point = "AddPod" if added else "RemovePod"
        for plugin in plugins:
            try:
                answer = (plugin.add_pod if added else plugin.remove_pod)(state, self.pod, other, node)
                status = SUCCESS if answer is None else checked(plugin, point, self.pod, answer, node.name)
            except BaseException as error:
                return failed(plugin, point, self.pod, error, node.name)
            if status is not SUCCESS:
                return status
        return SUCCESS


def is_extended(plugin: PreFilterPlugin) -> bool:
    """Return whether the plugin has AddPod or RemovePod."""
    return writes(plugin, "add_pod") or writes(plugin, "remove_pod")
