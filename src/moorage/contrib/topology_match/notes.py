"""What an operator should know: the plugin can do nothing for nodes without an object, and nothing good with
objects that nothing keeps up to date."""

from __future__ import annotations

import logging

from moorage.contrib.topology_match.caching import TopologyCache
from moorage.framework.handle import Handle

LATE = 60.0
"""Seconds after which an object that does not agree with the pods of its node is worth a note."""
_SHOWN = 3
"""Names in a line."""
_log = logging.getLogger(__name__)


class Notes:
    def __init__(self, cache: TopologyCache, handle: Handle) -> None:
        self._cache = cache
        self._handle = handle
        self._missing = 0
        self._late: set[str] = set()

    def check(self) -> None:
        """A line when the number of nodes without object changes; an event for each node that is late."""
        nodes, columns = self._handle.nodes, self._cache.columns
        missing = nodes.where(~columns.fact("known")[columns.places(nodes)])
        if len(missing) != self._missing:
            self._missing = len(missing)
            shown = ", ".join([*missing.names[:_SHOWN], *["…"] * (len(missing) > _SHOWN)])
            _log.warning(
                "%d of %d nodes have no NodeResourceTopology, so NodeResourceTopologyMatch refuses none of "
                "them%s", len(missing), len(nodes),
                f" ({shown}): run what publishes it there, such as nfd-topology-updater" if shown else "",
            )  # fmt: skip
        now = self._handle.clock.now()
        late = {name for name, since in self._cache.late.items() if now - since >= LATE}
        for name in sorted(late - self._late):
            self._report(name, now - self._cache.late[name])
        self._late = late

    def _report(self, name: str, seconds: float) -> None:
        note = (
            f"NodeResourceTopology {name} has not shown the pods of the node for {seconds:.0f} s, so "
            "it is not used, or pods are counted twice there: see whether what publishes the object runs"
        )
        _log.warning("%s", note)
        node = self._handle.node(name)
        if node is not None:
            self._handle.recorder.event(
                node.node, type="Warning", reason="StaleNodeResourceTopology", action="Scheduling", note=note,
                controller=self._handle.profile_name,
            )  # fmt: skip
