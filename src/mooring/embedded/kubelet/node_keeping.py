"""What kubelets do for their nodes: status, CSINode, and whether the node lives at all."""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.errors import AlreadyExists, MooringError
from mooring.api.resources import Unstructured
from mooring.api.selectors import parse_selector
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.caches import Caches
from mooring.embedded.controllers.writing import Writer
from mooring.embedded.kubelet import addresses, node_status, scripts
from mooring.embedded.kubelet.addresses import Addresses
from mooring.embedded.kubelet.settings import KubeletSettings
from mooring.embedded.kubelet.telling import Teller
from mooring.telemetry import logs

log = logs.get(__name__)

REPORT_SECONDS = 300.0
"""Between two full reports when nothing changes, as upstream's nodeStatusReportFrequency."""


class NodeKeeper:
    """The nodes of one `Kubelets`."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        teller: Teller,
        wall: Callable[[], float],
        settings: KubeletSettings,
    ) -> None:
        self.nodes = caches.of(kinds.NODES)
        self._csi_nodes = caches.of(kinds.CSI_NODES)
        self._writer = writer
        self._teller = teller
        self._wall = wall
        self._version = settings.version
        self._selector = parse_selector(settings.node_selector)
        self._addresses = Addresses(addresses.NODES)
        self._failed: set[str] = set()

    def living(self, name: str) -> Unstructured | None:
        """The node, if it is simulated here and alive."""
        found = self.nodes.get(name)
        if found is None or name in self._failed or scripts.is_dead(found):
            return None
        return found if self._selector.matches(found.labels) else None

    def living_uid(self, name: str) -> str | None:
        found = self.living(name)
        return None if found is None else found.uid

    def fail(self, name: str) -> None:
        self._failed.add(name)

    def recover(self, name: str) -> None:
        self._failed.discard(name)

    def forget(self, name: str) -> None:
        """The node is gone. One that comes under its name has power."""
        self._failed.discard(name)
        self._addresses.give_back(name)

    def address(self, node: Unstructured) -> str:
        return node_status.address_of(node) or self._addresses.of(node.name)

    async def sync(self, key: str) -> float | None:
        """Brings the status of a living node in line."""
        await self._sync(key, beat=False)
        return None

    async def report_all(self) -> None:
        """Full reports of all nodes, so that the heartbeat times in their conditions go on."""
        for node in self.nodes:
            try:
                await self._sync(node.key, beat=True)
            except MooringError as error:
                log.info(3, "Node was not reported, it will be next time", node=node, err=error)

    async def _sync(self, key: str, beat: bool) -> None:
        node = self.living(key)
        if node is None:
            return
        told, problems = scripts.node_conditions(node.annotations)
        for problem in problems:
            self._teller.problem(node, problem)
        status = node_status.status_of(node, self.address(node), told, self._version, self._wall(), beat)
        await self._writer.update_status(kinds.NODES, node, status)
        if self._csi_nodes.get(node.name) is None:
            await self._create_csi_node(node)

    async def _create_csi_node(self, node: Unstructured) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        raw = {"metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": {"drivers": []}}
        try:
            await self._writer.create(kinds.CSI_NODES, raw)
        except AlreadyExists:
            await self._writer.refresh(kinds.CSI_NODES, node.name, "")
