"""Static matching: which of the volumes that exist a claim gets on each node.

A volume that is reserved for the claim is taken or nothing is; otherwise the smallest one that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mooring.api import quantity
from mooring.api.label_selectors import Selector
from mooring.api.selectors import EVERYTHING, compile_label_selector
from mooring.api.storage import PersistentVolume, PersistentVolumeClaim
from mooring.framework.nodes import BoolArray
from mooring.plugins.volumes import class_of_claim, class_of_volume

AVAILABLE = "Available"
FILESYSTEM = "Filesystem"
NONE = -1

PickArray = npt.NDArray[np.int32]
"""Per node the index of the chosen volume, or NONE."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The volumes that could serve one claim on some node, as indices into a list of volumes."""

    reserved: tuple[int, ...]
    """Bound to the claim in advance; the first one decides."""
    free: tuple[int, ...]
    """The smallest first, equal ones in the order in which they appeared."""


def size_of_claim(claim: PersistentVolumeClaim) -> int:
    """The size that is asked for, in nano-bytes; 0 when none is."""
    return quantity.parse(claim.spec.resources.requests.get("storage", 0))


def size_of_volume(volume: PersistentVolume) -> int:
    return quantity.parse(volume.spec.capacity.get("storage", 0))


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is reserved for this very claim, by a user or a controller."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.namespace, claim.name)
        and reference.uid in ("", claim.uid)
    )


def candidates(claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]) -> Candidates:
    """What does not depend on the node. A broken selector of the claim raises SelectorError."""
    selector = EVERYTHING if claim.spec.selector is None else compile_label_selector(claim.spec.selector)
    fitting = [
        (index, volume)
        for index, volume in enumerate(volumes)
        if volume.spec.claim_ref is None or is_bound_to(volume, claim)
        if _fits(volume, claim)
    ]
    free = sorted(
        (size_of_volume(volume), index) for index, volume in fitting if _is_free(volume, claim, selector)
    )
    reserved = tuple(index for index, volume in fitting if is_bound_to(volume, claim))
    return Candidates(reserved, tuple(index for _, index in free))


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Size, mode and attributes; nothing else counts for a reserved volume."""
    wanted, offered = claim.spec, volume.spec
    return (
        size_of_volume(volume) >= size_of_claim(claim)
        and (wanted.volume_mode or FILESYSTEM) == (offered.volume_mode or FILESYSTEM)
        and (wanted.volume_attributes_class_name or "") == (offered.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == AVAILABLE
        and selector.matches(volume.labels)
        and class_of_volume(volume) == class_of_claim(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def pick(
    found: Candidates,
    asked: BoolArray,
    reach: Callable[[int], BoolArray],
    taken: Iterable[PickArray],
) -> PickArray:
    """The volume of each node where `asked` is true. `reach` gives the nodes of a volume, `taken` what
    earlier claims of the same pod have got."""
    earlier = tuple(taken)
    chosen = np.full(len(asked), NONE, dtype=np.int32)
    undecided = asked.copy()
    for index in (*found.reserved, *found.free):
        if not undecided.any():
            break
        open_here = undecided.copy()
        for picks in earlier:
            open_here &= picks != index
        reached = open_here & reach(index)
        chosen[reached] = index
        # A reserved volume decides even where it cannot be reached: the claim has no other then.
        undecided &= ~(open_here if index in found.reserved else reached)
    return chosen
