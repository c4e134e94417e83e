"""Compute masks of the nodes that can access a volume, a storage class's topology or a storage capacity."""

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
"""The number of nodes that are checked one by one; for more a mask is faster."""


def required_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """Return the volume's own node affinity; None for all nodes."""
    return volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None


def reachable(nodes: Nodes, selector: NodeSelector | None) -> BoolArray:
    """Return True for nodes that can access a volume with this affinity. The mask is kept, because bound volumes are
    checked repeatedly."""
    if selector is None:
        return np.ones(len(nodes), dtype=np.bool_)
    return required_mask(nodes, by_labels(compile_node_selector(selector)))


def reachable_once(nodes: Nodes, selector: NodeSelector | None) -> BoolArray:
    """Return the nodes that can access the volume, without keeping the mask: there may be thousands of volumes, each on
    a different node."""
    if selector is None:
        return np.ones(len(nodes), dtype=np.bool_)
    return compute_required(nodes, by_labels(compile_node_selector(selector)))


def few_rows(selector: NodeSelector | None, topology: Callable[[str], Topology]) -> list[int] | None:
    """Return the rows of the nodes that a volume names by a label value, as local volumes do by hostname, even if these
    nodes are gone. Return None for any other affinity, and for a label that many nodes share."""
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
    """Match by labels only: volume affinity never matches a node's name field."""
    terms = tuple(replace(term, fields=()) for term in selector.terms)
    return RequiredNodeAffinity(None, CompiledNodeSelector(terms))


def allowed(nodes: Nodes, terms: Sequence[TopologySelectorTerm]) -> BoolArray:
    """Return the nodes where a class provisions: all without terms, otherwise those that match a term. An empty or
    invalid term matches no node."""
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
    """Return the nodes that a capacity applies to; a null or invalid topology applies to none."""
    try:
        selector = compile_label_selector(capacity.node_topology)
    except SelectorError:
        return np.zeros(len(nodes), dtype=np.bool_)
    if selector.nothing:
        return np.zeros(len(nodes), dtype=np.bool_)
    return compute_required(nodes, RequiredNodeAffinity(selector, None))


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the size in bytes of the largest volume that can be created; maximumVolumeSize takes precedence over
    capacity."""
    limit = capacity.maximum_volume_size
    limit = capacity.capacity if limit is None else limit
    return None if limit is None else quantity.value(limit)
