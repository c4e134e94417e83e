"""Static matching: which of the volumes that exist a claim gets on each node.

A volume that is reserved for the claim is taken or nothing is; otherwise the smallest one that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage.api import quantity
from moorage.api.selectors import EVERYTHING, Selector, compile_label_selector
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.framework.nodes import BoolArray
from moorage.plugins.volumes import class_of_claim, class_of_volume

AVAILABLE = "Available"
FILESYSTEM = "Filesystem"
NONE = -1

PickArray = npt.NDArray[np.int32]
"""Per node the index of the chosen volume, or NONE."""


@dataclass(frozen=True, slots=True)
class VolumeCandidates:
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


class _Wanted:
    """A claim, read once for all volumes. A broken selector raises SelectorError."""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        spec = claim.spec
        self.size = size_of_claim(claim)
        self.mode = spec.volume_mode or FILESYSTEM
        self.attributes_class = spec.volume_attributes_class_name or ""
        self.storage_class = class_of_claim(claim)
        self.access_modes = frozenset(spec.access_modes)
        self.selector: Selector = EVERYTHING if spec.selector is None else compile_label_selector(spec.selector)

    def fits(self, volume: PersistentVolume, size: int) -> bool:
        """Size, mode and attributes; nothing else counts for a reserved volume."""
        offered = volume.spec
        return (
            size >= self.size
            and (offered.volume_mode or FILESYSTEM) == self.mode
            and (offered.volume_attributes_class_name or "") == self.attributes_class
            and volume.metadata.deletion_timestamp is None
        )

    def may_take(self, volume: PersistentVolume) -> bool:
        """The rest, for a volume that no claim has reserved."""
        return (
            volume.status.phase == AVAILABLE
            and self.access_modes.issubset(volume.spec.access_modes)
            and class_of_volume(volume) == self.storage_class
            and self.selector.matches(volume.labels)
        )


def candidates(claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]) -> VolumeCandidates:
    """What does not depend on the node. A broken selector of the claim raises SelectorError."""
    wanted = _Wanted(claim)
    reserved: list[int] = []
    free: list[tuple[int, int]] = []
    for index, volume in enumerate(volumes):
        is_reserved = volume.spec.claim_ref is not None
        if is_reserved and not is_bound_to(volume, claim):
            continue
        size = size_of_volume(volume)
        if not wanted.fits(volume, size):
            continue
        if is_reserved:
            reserved.append(index)
        elif wanted.may_take(volume):
            free.append((size, index))
    free.sort()
    return VolumeCandidates(tuple(reserved), tuple([index for _, index in free]))


def pick(
    found: VolumeCandidates,
    asked: BoolArray,
    few: Callable[[int], Sequence[int] | None],
    reach: Callable[[int], BoolArray],
    taken: Iterable[PickArray],
) -> PickArray:
    """The volume of each node where `asked` is true. `few` gives the nodes of a volume that only few reach,
    else None, and `reach` those of any; `taken` is what earlier claims of the same pod have got."""
    earlier = tuple(taken)
    chosen = np.full(len(asked), NONE, dtype=np.int32)
    undecided = asked.copy()
    for index in found.reserved:
        open_here = _open(undecided, earlier, index)
        chosen[open_here & reach(index)] = index
        # It decides even where it cannot be reached: the claim has no other then.
        undecided &= ~open_here
    remaining = int(np.count_nonzero(undecided))
    for index in found.free if remaining else ():
        places = few(index)
        if places is None:
            reached = _open(undecided, earlier, index) & reach(index)
            chosen[reached] = index
            undecided &= ~reached
            remaining = int(np.count_nonzero(undecided))
        else:
            for place in places:
                if undecided[place] and all(picks[place] != index for picks in earlier):
                    chosen[place], undecided[place] = index, False
                    remaining -= 1
        if not remaining:
            break
    return chosen


def _open(undecided: BoolArray, earlier: Sequence[PickArray], index: int) -> BoolArray:
    """Nodes that still look for a volume, and on which no claim has taken this one."""
    found = undecided.copy()
    for picks in earlier:
        found &= picks != index
    return found
