"""ImageLocality: prefer nodes that already have the pod's images.

Follows pkg/scheduler/framework/plugins/imagelocality/image_locality.go. An image counts with its size on the node times
the share of nodes that have it, so that a single node with a new image does not attract all pods. Image volumes add to
the sum like containers. Up to 1.36 only containers raised the sum that gives the full score."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, cast

import numpy as np

from moorage.api.meta import key_of
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableScorePlugin
from moorage.framework.nodes import FloatArray, IntArray, Nodes
from moorage.framework.optional import ReusablePlugin
from moorage.framework.status import MAX_NODE_SCORE

MIB = 1024 * 1024
FLOOR = 23 * MIB
"""Smaller sums score 0."""
CEILING = 1000 * MIB
"""This size per image gives the full score."""


class ImageLocality(WholeTableScorePlugin, ReusablePlugin):
    name = "ImageLocality"
    few_signs = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._images = handle.node_index("ImageLocality", images_on)
        self._counts_volumes = handle.behaviour.image_volumes_raise_ceiling

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        present = [image for image in images_of(pod) if self._images.rows(image)]
        if not present:
            return 0
        total: FloatArray = np.zeros(len(nodes))
        for image in present:
            total += np.floor(self._sizes(nodes, image) * self._spread(image))
        out[:] = scaled(total, self._number_of_images(pod))
        return None

    def _number_of_images(self, pod: Pod) -> int:
        """Return how many images the full score is for."""
        containers = len(pod.spec.init_containers) + len(pod.spec.containers)
        if not self._counts_volumes:
            return containers
        return containers + sum(volume.image is not None for volume in pod.spec.volumes)

    def _spread(self, image: str) -> float:
        """Return the share of all nodes that have the image."""
        return len(self._images.rows(image)) / len(self.handle.nodes)

    def _sizes(self, nodes: Nodes, image: str) -> FloatArray:
        """Return the image's size on each node; 0 where the node does not have it."""

        def compute(some: Nodes) -> FloatArray:
            sizes = self._images.rows(image)
            return np.array([sizes.get(row, 0) for row in some.table_rows.tolist()], dtype=np.float64)

        return cast(FloatArray, nodes.node_column(("ImageLocality", image), compute))

    def sign(self, pod: Pod) -> Hashable:
        return key_of(list(images_of(pod))), len(pod.spec.init_containers) + len(pod.spec.containers)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        """Depend on all nodes: the share of nodes that have an image changes when any node pulls it."""
        return (Reads.NODE, Reads.NODE_COUNT, self._images.version)


def images_on(node: Node) -> Iterator[tuple[str, int]]:
    """Return every name of every image on a node, with the image's size."""
    for image in node.status.images:
        for name in image.names:
            yield name, image.size_bytes


def images_of(pod: Pod) -> Iterator[str]:
    """Return the images that the pod will pull, named as nodes report them. An image that is used twice counts
    twice."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield normalized(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield normalized(volume.image.reference)


def normalized(name: str) -> str:
    """Return the name with `:latest` if it has neither tag nor digest; a colon before the last slash is a port."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def scaled(total: FloatArray, images: int) -> FloatArray:
    """Convert bytes to a score of 0-100, rounded down."""
    ceiling = CEILING * images
    within = np.clip(total, FLOOR, ceiling)
    return cast(FloatArray, np.floor(MAX_NODE_SCORE * (within - FLOOR) / (ceiling - FLOOR)))
