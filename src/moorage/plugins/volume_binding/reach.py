"""Which nodes reach what: node affinities of volumes, topologies of classes, storage capacities, as masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from moorage.api import quantity
from moorage.api.errors import SelectorError
from moorage.api.node import NodeSelector
from moorage.api.node_selectors import CompiledNodeSelector, RequiredNodeAffinity, compile_node_selector
from moorage.api.selectors import IN, compile_label_selector, make_requirement, make_selector
from moorage.api.storage import CSIStorageCapacity, PersistentVolume, TopologySelectorTerm
from moorage.framework.indexes import Topology
from moorage.framework.nodes import BoolArray, Nodes
from moorage.plugins.node_masks import compute_required, required_mask

_FEW = 64
"""Nodes that are looked at one by one; beyond that a mask is faster."""


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes that the volume names itself; None for all."""
    return volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None


def reachable(nodes: Nodes, selector: NodeSelector | None) -> BoolArray:
    """True where a volume with this affinity can be used. Kept, as bound volumes are asked about again."""
    if selector is None:
        return np.ones(len(nodes), dtype=np.bool_)
    return required_mask(nodes, by_labels(compile_node_selector(selector)))


def reachable_once(nodes: Nodes, selector: NodeSelector | None) -> BoolArray:
    """Which nodes reach it, not kept: there may be thousands of volumes to choose from, each with a node of its own."""
    if selector is None:
        return np.ones(len(nodes), dtype=np.bool_)
    return compute_required(nodes, by_labels(compile_node_selector(selector)))


def few_rows(selector: NodeSelector | None, topology: Callable[[str], Topology]) -> list[int] | None:
    """The table's rows of the nodes that a volume names by the value of a label, as local ones do by their hostname,
    also where these are gone; None for any other affinity, and for a label that many nodes share."""
    if selector is None or not selector.node_selector_terms:
        return None
    rows: list[int] = []
    for term in selector.node_selector_terms:
        if term.match_fields or len(term.match_expressions) != 1:
            return None
        [wanted] = term.match_expressions
        if wanted.operator != IN:
            return None
        found = topology(wanted.key)
        for value in wanted.values:
            rows += found.rows_of(value)
        if len(rows) > _FEW:
            return None
    return rows


@lru_cache(maxsize=16384)
def by_labels(selector: CompiledNodeSelector) -> RequiredNodeAffinity:
    """Volumes see the labels of a node only, never its name."""
    terms = tuple(replace(term, fields=()) for term in selector.terms)
    return RequiredNodeAffinity(None, CompiledNodeSelector(terms))


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
            found |= compute_required(nodes, RequiredNodeAffinity(make_selector(wanted), None))
    return found


def has_capacity(nodes: Nodes, capacity: CSIStorageCapacity) -> BoolArray:
    """The nodes that a capacity speaks about; a null or broken topology is nowhere."""
    try:
        selector = compile_label_selector(capacity.node_topology)
    except SelectorError:
        return np.zeros(len(nodes), dtype=np.bool_)
    if selector.nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    return compute_required(nodes, RequiredNodeAffinity(selector, None))


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes; the maximum size is more precise than the capacity."""
    limit = capacity.maximum_volume_size
    limit = capacity.capacity if limit is None else limit
    return None if limit is None else quantity.value(limit)
