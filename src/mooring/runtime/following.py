"""Who has to be told when a pod comes or goes in a dry run, and whose answers that can change."""

from __future__ import annotations

from mooring.api.pod import Pod
from mooring.framework.access import PODS, ROW
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import writes
from mooring.framework.nodes import NodeView
from mooring.framework.points import PreFilterPlugin
from mooring.framework.status import Status
from mooring.runtime.filtering import run_add_pod, run_remove_pod
from mooring.runtime.profile import Profile


class Plan:
    """The plugins that have a say about one pod, by what their answers depend on."""

    def __init__(self, profile: Profile, pod: Pod, state: CycleState) -> None:
        self.profile, self.pod, self.state = profile, pod, state
        skipped = state.skip_filter
        self.filters = [plugin for plugin in profile.filter if plugin.name not in skipped]
        self.followers = [p for p in profile.pre_filter if p.name not in skipped and _follows(p)]
        """Told of every pod that comes and goes, unless it does not concern them."""
        reads = {plugin.name: plugin.reads(pod) for plugin in self.filters}
        followers = {plugin.name for plugin in self.followers}
        self.worldly = {n for n, read in reads.items() if read is None or PODS in read or n in followers}
        """Filters whose answers change with the cycle state."""
        self.by_row = {name for name, read in reads.items() if read is None or ROW in read}
        """Filters whose answers change with the row."""
        self.by_sums = {p.name for p in self.filters if p.name not in self.worldly and writes(p, "slack")}
        """Filters that read nothing of the row but sums of requests."""

    def concerned(self, other: Pod) -> bool:
        """Whether some plugin has to be told that `other` comes or goes."""
        return any(plugin.concerns(self.state, self.pod, other) for plugin in self.followers)

    def tell(self, state: CycleState, other: Pod, node: NodeView, *, added: bool) -> Status:
        """`other` came to the node, or left it."""
        run = run_add_pod if added else run_remove_pod
        return run(self.profile, state, self.pod, other, node)


def _follows(plugin: PreFilterPlugin) -> bool:
    return writes(plugin, "add_pod") or writes(plugin, "remove_pod")
