"""Match node selectors against all nodes at once: one mask per selector, kept by the node table until a node changes.

NodeAffinity filters and scores with these masks; other plugins use them to find the nodes that a pod's selector admits.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from moorage.api.node_selectors import METADATA_NAME, NodeTerm, PreferredTerms, RequiredNodeAffinity
from moorage.api.selectors import GT, IN, Requirement, parse_integer
from moorage.framework.nodes import BoolArray, IntArray, Nodes

_FLOAT_EXACT = 2**53
"""Bounds of Gt and Lt below this compare exactly with labels in float64."""


def required_mask(nodes: Nodes, required: RequiredNodeAffinity) -> BoolArray:
    """Return True for the nodes that a nodeSelector and required terms admit."""

    def compute(some: Nodes) -> BoolArray:
        return compute_required(some, required)

    return cast(BoolArray, nodes.node_column(("NodeAffinity", required.key), compute))


def compute_required(nodes: Nodes, required: RequiredNodeAffinity) -> BoolArray:
    """Compute the mask of a term without keeping it."""
    mask: BoolArray = np.ones(len(nodes), dtype=np.bool_)
    if required.selector is not None:
        for requirement in required.selector.requirements:
            mask &= _label_mask(nodes, requirement)
    if required.terms is not None:
        fits: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
        for term in required.terms.terms:
            fits |= compute_term(nodes, term)
        mask &= fits
    return mask


def preference(nodes: Nodes, preferences: PreferredTerms) -> IntArray:
    """Return the sum of the weights of the preferences that each node satisfies."""

    def compute(some: Nodes) -> IntArray:
        total: IntArray = np.zeros(len(some), dtype=np.int64)
        for preferred in preferences.terms:
            total += preferred.weight * compute_term(some, preferred.term)
        return total

    return cast(IntArray, nodes.node_column(("NodeAffinity.preferred", preferences.key), compute))


def compute_term(nodes: Nodes, term: NodeTerm) -> BoolArray:
    """Compute the mask of one term without keeping it."""
    mask: BoolArray = np.full(len(nodes), not term.errors)
    for requirement in term.labels:
        mask &= _label_mask(nodes, requirement)
    for requirement in term.fields:
        mask &= _field_mask(nodes, requirement)
    return mask


def _label_mask(nodes: Nodes, requirement: Requirement) -> BoolArray:
    key = requirement.key
    match requirement.operator:
        case "In":
            return nodes.label_equals(key, *requirement.values)
        case "NotIn":
            return ~nodes.label_equals(key, *requirement.values)
        case "Exists":
            return nodes.has_label(key)
        case "DoesNotExist":
            return ~nodes.has_label(key)
        case _:
            return _compared(nodes, requirement)


def _compared(nodes: Nodes, requirement: Requirement) -> BoolArray:
    bound = parse_integer(requirement.values[0])
    if bound is None or abs(bound) >= _FLOAT_EXACT:
        return np.array([requirement.matches(node.labels) for node in nodes], dtype=np.bool_)
    numbers = nodes.label_numbers(requirement.key)
    compared: BoolArray = numbers > bound if requirement.operator == GT else numbers < bound
    return compared


def _field_mask(nodes: Nodes, requirement: Requirement) -> BoolArray:
    """Match a field. Nodes have a single field, metadata.name; any other is empty."""
    wanted = requirement.operator == IN
    if requirement.key != METADATA_NAME:
        return np.full(len(nodes), ("" in requirement.values) == wanted)
    named = nodes.named(*requirement.values)
    return named if wanted else ~named
