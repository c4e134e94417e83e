"""Explain which claims keep a pod off a node, and what the node lacks for them."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api import quantity
from moorage.api.node_selectors import compile_node_selector
from moorage.api.quantity import BYTES
from moorage.api.resources import CSI_NODES, PERSISTENT_VOLUMES
from moorage.api.storage import PersistentVolumeClaim
from moorage.framework.handle import Handle
from moorage.framework.nodes import NodeView
from moorage.framework.optional import Detail
from moorage.plugins import csi_translation as csi
from moorage.plugins.unmet_terms import unmet
from moorage.plugins.volume_binding import finding, reach
from moorage.plugins.volume_binding.claims import PodClaims
from moorage.plugins.volumes import SELECTED_NODE, class_of_claim


class Explainer:
    """Asks the finder about one node and adds details to its rejections."""

    def __init__(self, handle: Handle, finder: finding.Finder) -> None:
        self._finder = finder
        self._volumes = handle.assume_cache(PERSISTENT_VOLUMES)
        self._csi_nodes = handle.lister(CSI_NODES)

    def explain(self, claims: PodClaims, node: NodeView) -> Iterator[Detail]:
        for claim, reason, refused in self._finder.find(claims, node.alone()).failing:
            if refused[0]:
                yield from self._why(claim, reason, node)

    def _why(self, claim: PersistentVolumeClaim, reason: str, node: NodeView) -> Iterator[Detail]:
        match reason:
            case finding.REASON_AFFINITY:
                yield from self._out_of_reach(claim, node)
            case finding.REASON_GONE:
                yield Detail(f"claim {claim.key}: volume {claim.spec.volume_name}", there="not found")
            case finding.REASON_NO_SPACE:
                asked, there = _size(claim) or 0, self._finder.largest(claim, node)
                subject = f"storage of class {class_of_claim(claim)} for claim {claim.key}"
                yield Detail(subject, asked=asked, there=there, missing=asked - there, unit=BYTES)
            case _:
                yield _no_volume(claim, node)

    def _out_of_reach(self, claim: PersistentVolumeClaim, node: NodeView) -> Iterator[Detail]:
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is not None:
            wanted = compile_node_selector(csi.affinity_on(self._csi_nodes.get(node.name), volume))
            yield from unmet(reach.by_labels(wanted), node, f"claim {claim.key}, volume {volume.name}: ")


def _no_volume(claim: PersistentVolumeClaim, node: NodeView) -> Detail:
    selected = claim.annotations.get(SELECTED_NODE, node.name)
    if selected != node.name:
        return Detail(f"claim {claim.key}", there=f"to be provisioned on node {selected}")
    return Detail(f"a volume of class {class_of_claim(claim)} for claim {claim.key}", asked=_size(claim), unit=BYTES)


def _size(claim: PersistentVolumeClaim) -> int | None:
    size = claim.spec.resources.requests.get("storage")
    return None if size is None else quantity.value(size)
