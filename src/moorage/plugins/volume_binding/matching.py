"""Static matching: choose an existing volume for a claim on each node.

Follows FindMatchingVolume in k8s.io/component-helpers/storage/volume. If a volume is reserved for the claim, only that
volume may be used; otherwise the smallest volume that fits is chosen."""

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
    """Return the requested size in nano-bytes; 0 if there is none."""
    return quantity.parse(claim.spec.resources.requests.get("storage", 0))


def size_of_volume(volume: PersistentVolume) -> int:
    return quantity.parse(volume.spec.capacity.get("storage", 0))


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a user or a controller has reserved the volume for this claim."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.namespace, claim.name)
        and reference.uid in ("", claim.uid)
    )


class _Wanted:
    """A claim that is read once for all volumes. An invalid selector raises SelectorError."""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        spec = claim.spec
        self.size = size_of_claim(claim)
        self.mode = spec.volume_mode or FILESYSTEM
        self.attributes_class = spec.volume_attributes_class_name or ""
        self.storage_class = class_of_claim(claim)
        self.access_modes = frozenset(spec.access_modes)
        self.selector: Selector = EVERYTHING if spec.selector is None else compile_label_selector(spec.selector)

    def fits(self, volume: PersistentVolume, size: int) -> bool:
        """Check size, mode and attributes; a reserved volume needs no other check."""
        offered = volume.spec
        return (
            size >= self.size
            and (offered.volume_mode or FILESYSTEM) == self.mode
            and (offered.volume_attributes_class_name or "") == self.attributes_class
            and volume.metadata.deletion_timestamp is None
        )

    def may_take(self, volume: PersistentVolume) -> bool:
        """Check the other conditions for a volume that is not reserved."""
        return (
            volume.status.phase == AVAILABLE
            and self.access_modes.issubset(volume.spec.access_modes)
            and class_of_volume(volume) == self.storage_class
            and self.selector.matches(volume.labels)
        )


def candidates(claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]) -> VolumeCandidates:
    """Return the volumes that match, apart from the node. Raises SelectorError for an invalid selector of the claim."""
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
    """Choose a volume for each node where `asked` is true. `few` returns the nodes of a volume that only few nodes can
    access, otherwise None; `reach` returns the nodes of any volume. `taken` are the volumes of earlier claims of the
    same pod."""
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
    """Return the nodes that still need a volume, and on which no claim has taken this one."""
    found = undecided.copy()
    for picks in earlier:
        found &= picks != index
    return found
