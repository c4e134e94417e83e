"""Explain which claims keep a pod off a node and what the node lacks for them, and what keeps it off every node: claims
that do not exist, provisioners without a sign of life, volumes that are too small or in a zone without nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from moorage.api import quantity
from moorage.api.node_selectors import CompiledNodeSelector, compile_node_selector
from moorage.api.pod import Pod
from moorage.api.quantity import BYTES, NANO, format_number
from moorage.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from moorage.api.selectors import IN
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.optional import Detail
from moorage.plugins import csi_translation as csi
from moorage.plugins.label_facts import MAX_SHOWN, similar, values_here
from moorage.plugins.unmet_terms import unmet
from moorage.plugins.volume_binding import finding, reach
from moorage.plugins.volume_binding.claims import PodClaims
from moorage.plugins.volume_binding.matching import AVAILABLE, size_of_claim, size_of_volume
from moorage.plugins.volumes import SELECTED_NODE, claim_names, class_of_claim, class_of_volume

NO_PROVISIONER = "kubernetes.io/no-provisioner"
MAX_CLAIMS = 20
"""Claims of one pod that facts are looked for."""


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


class ClaimFacts:
    """Looks at the claims of a pod, their classes and volumes."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def of(self, pod: Pod, nodes: Nodes) -> Iterator[str]:
        claims = self._handle.lister(PERSISTENT_VOLUME_CLAIMS)
        for name in islice(dict.fromkeys(name for name, _ in claim_names(pod)), MAX_CLAIMS):
            claim: PersistentVolumeClaim | None = claims.get(name, pod.namespace)
            if claim is None:
                yield self._missing(name, pod.namespace)
            elif claim.spec.volume_name:
                yield from self._bound(claim, nodes)
            else:
                yield from self._unbound(claim)

    def _missing(self, name: str, namespace: str) -> str:
        there = {claim.name: 1 for claim in self._handle.lister(PERSISTENT_VOLUME_CLAIMS).list(namespace)}
        meant = similar(name, there)
        hint = f"; did you mean {meant}?" if meant else ". Create it, or correct the name."
        return f"The claim {name} does not exist in namespace {namespace}{hint}"

    def _bound(self, claim: PersistentVolumeClaim, nodes: Nodes) -> Iterator[str]:
        volume: PersistentVolume | None = self._handle.lister(PERSISTENT_VOLUMES).get(claim.spec.volume_name)
        if volume is None:
            yield f"The claim {claim.key} is bound to volume {claim.spec.volume_name}, which does not exist."
            return
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return
        wanted = compile_node_selector(affinity.required)
        if not any(wanted.matches(view.labels, view.name) for view in nodes):
            yield out_of_reach(claim, volume, wanted, nodes)

    def _unbound(self, claim: PersistentVolumeClaim) -> Iterator[str]:
        name = class_of_claim(claim)
        found: StorageClass | None = self._handle.lister(STORAGE_CLASSES).get(name) if name else None
        asked = format_number(-(-size_of_claim(claim) // NANO), BYTES)
        if name and found is None:
            yield f"The claim {claim.key} asks for {asked} of class {name}, which does not exist."
        elif found is None or found.provisioner in ("", NO_PROVISIONER):
            yield f"The claim {claim.key} asks for {asked} of class {name or '<none>'}; {self._largest(name)}."
        else:
            signs = self._signs(found.provisioner)
            yield f"The claim {claim.key} waits for the provisioner {found.provisioner}. {signs}"

    def _largest(self, name: str) -> str:
        """Say how large the largest volume is that a claim of this class could still take."""
        free: Iterable[PersistentVolume] = (
            volume
            for volume in self._handle.lister(PERSISTENT_VOLUMES).list()
            if class_of_volume(volume) == name and volume.spec.claim_ref is None
            if volume.status.phase in ("", AVAILABLE)
        )
        best = max(free, key=size_of_volume, default=None)
        if best is None:
            return "no volume of that class is available, and nothing provisions one"
        size = format_number(size_of_volume(best) // NANO, BYTES)
        return f"the largest available volume is {best.name} with {size}, and nothing provisions one"

    def _signs(self, provisioner: str) -> str:
        """Say whether anything shows that a provisioner is installed: its CSIDriver, a node with it, a pod of its
        name."""
        if self._handle.lister(CSI_DRIVERS).get(provisioner) is not None:
            return (
                f"The CSIDriver {provisioner} exists; look at the events of the claim and the logs of its controller."
            )
        for node in self._handle.lister(CSI_NODES).list():
            if any(driver.name == provisioner for driver in node.spec.drivers):
                return f"Node {node.name} has the driver; look at the events of the claim."
        names = {provisioner, provisioner.replace(".", "-"), provisioner.rpartition("/")[2]}
        for pod in self._handle.lister(PODS).list():
            if any(name in pod.name for name in names):
                return f"The pod {pod.key} may be it; look at its logs."
        return "No CSIDriver, node or pod of that name shows that it runs in this cluster."


def out_of_reach(
    claim: PersistentVolumeClaim, volume: PersistentVolume, wanted: CompiledNodeSelector, nodes: Nodes
) -> str:
    """Say which labels a volume needs, and which values the nodes have instead."""
    needed = [f"{each.key}={'|'.join(each.values)}" for term in wanted.terms for each in term.labels]
    keys = dict.fromkeys(each.key for term in wanted.terms for each in term.labels if each.operator == IN)
    return " ".join(
        (
            f"Volume {volume.name} of claim {claim.key} needs a node with {' or '.join(needed[:MAX_SHOWN])};",
            f"no node has that. {' '.join(values_here(key, nodes) for key in list(keys)[:MAX_SHOWN])}".rstrip(),
        )
    )
