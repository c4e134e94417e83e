"""The nodes that count for a constraint, as masks over all rows: kept per changed node, shared by all pods
with the same demands."""

from __future__ import annotations

import numpy as np

from mooring.api.node_selectors import NodeTerm, RequiredNodeAffinity
from mooring.api.pod import Pod
from mooring.api.taints import find_untolerated
from mooring.framework.nodes import BoolArray, Columns, Nodes
from mooring.plugins.node_masks import compute_term

ANY_NODE = RequiredNodeAffinity(None, None)


def admitted_mask(columns: Columns, required: RequiredNodeAffinity) -> BoolArray | None:
    """Rows of the nodes that a node selector and required affinity admit; None for all."""
    if required == ANY_NODE:
        return None
    key = ("PodTopologySpread.admitted", required)
    mask: BoolArray = columns.node_column(key, lambda nodes: _admitted(nodes, required))
    return mask


def tolerated_mask(columns: Columns, pod: Pod) -> BoolArray | None:
    """Rows of the nodes without a NoSchedule or NoExecute taint that the pod does not tolerate; None for
    all."""
    tolerations = pod.spec.tolerations
    refused = [find_untolerated(cls.taints, tolerations) is not None for cls in columns.taints.classes]
    return ~np.array(refused)[columns.taints.ids] if any(refused) else None


def _admitted(nodes: Nodes, required: RequiredNodeAffinity) -> BoolArray:
    mask = np.ones(len(nodes), dtype=np.bool_)
    if required.selector is not None:
        mask &= compute_term(nodes, NodeTerm(required.selector.requirements))
    if required.terms is not None:
        matched = [compute_term(nodes, term) for term in required.terms.terms]
        mask &= np.logical_or.reduce(matched) if matched else False
    return mask
