"""Which nodes reach what: node affinities of volumes, topologies of classes, storage capacities, as masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mooring.api import quantity
from mooring.api.errors import SelectorError
from mooring.api.node import NodeSelector
from mooring.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    CompiledNodeSelector,
    Requirement,
    compile_label_selector,
    compile_node_selector,
    make_requirement,
)
from mooring.api.storage import CSIStorageCapacity, PersistentVolume, TopologySelectorTerm
from mooring.framework.nodes import BoolArray, Nodes

MASKS = "VolumeBinding.reach"


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes that the volume names itself; None for all."""
    return volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None


def reachable(nodes: Nodes, selector: NodeSelector | None) -> BoolArray:
    """True where a volume with this affinity can be used. Volumes see labels only, never a node's name."""
    if selector is None:
        return np.ones(len(nodes), dtype=np.bool_)
    compiled = compile_node_selector(selector)
    return nodes.node_column((MASKS, compiled), lambda some: matching(some, compiled))


def matching(nodes: Nodes, selector: CompiledNodeSelector) -> BoolArray:
    found = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        if not term.errors:
            found |= meets_all(nodes, term.labels)
    return found


def meets_all(nodes: Nodes, requirements: Iterable[Requirement]) -> BoolArray:
    found = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        found &= meets(nodes, requirement)
    return found


def meets(nodes: Nodes, requirement: Requirement) -> BoolArray:
    """One requirement on the labels of all nodes."""
    key, values = requirement.key, requirement.values
    if requirement.operator == IN:
        return nodes.label_equals(key, *values)
    if requirement.operator == NOT_IN:
        return ~nodes.label_equals(key, *values)
    if requirement.operator == EXISTS:
        return nodes.has_label(key)
    if requirement.operator == DOES_NOT_EXIST:
        return ~nodes.has_label(key)
    # Gt and Lt are rare, and exact only on integers.
    return np.fromiter((requirement.matches(node.labels) for node in nodes), np.bool_, len(nodes))


def allowed(nodes: Nodes, terms: Sequence[TopologySelectorTerm]) -> BoolArray:
    """Where a class provisions: without terms everywhere, else where one of them holds. An empty or broken
    term holds nowhere."""
    if not terms:
        return np.ones(len(nodes), dtype=np.bool_)
    found = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        try:
            wanted = [make_requirement(r.key, IN, r.values) for r in term.match_label_expressions]
        except SelectorError:
            continue
        if wanted:
            found |= meets_all(nodes, wanted)
    return found


def has_room(nodes: Nodes, capacity: CSIStorageCapacity) -> BoolArray:
    """The nodes that a capacity speaks about; a null or broken topology is nowhere."""
    try:
        selector = compile_label_selector(capacity.node_topology)
    except SelectorError:
        return np.zeros(len(nodes), dtype=np.bool_)
    if selector.nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    return meets_all(nodes, selector.requirements)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes; the maximum size is more precise than the capacity."""
    limit = capacity.maximum_volume_size
    limit = capacity.capacity if limit is None else limit
    return None if limit is None else quantity.value(limit)
