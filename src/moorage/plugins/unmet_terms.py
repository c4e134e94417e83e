"""Describe the parts of a node selector that a node does not satisfy, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.api.node_selectors import NodeTerm, RequiredNodeAffinity
from moorage.api.selectors import GT, LT, Requirement
from moorage.framework.nodes import NodeView
from moorage.framework.optional import NO_LABEL, Detail


def unmet(required: RequiredNodeAffinity, node: NodeView, of: str = "") -> Iterator[Detail]:
    """Return the nodeSelector labels that the node lacks, and what fails in each of the terms. `of` names the owner of
    the selector."""
    for label in required.selector.requirements if required.selector is not None else ():
        if not label.matches(node.labels):
            yield Detail(f"{of}nodeSelector {label}", there=node.labels.get(label.key, NO_LABEL))
    if required.terms is not None and not required.terms.matches(node.labels, node.name):
        yield from _unmet_terms(required.terms.terms, node, of)


def _unmet_terms(terms: Sequence[NodeTerm], node: NodeView, of: str) -> Iterator[Detail]:
    if not terms:
        yield Detail(f"{of}node affinity without terms, which no node matches")
    for number, term in enumerate(terms, 1):
        where = of if len(terms) == 1 else f"{of}term {number} of {len(terms)}, one must match: "
        for error in term.errors:
            yield Detail(where + error)
        for wanted in term.labels:
            if not wanted.matches(node.labels):
                yield Detail(where + _text(wanted), there=node.labels.get(wanted.key, NO_LABEL))
        for wanted in term.fields:
            if not NodeTerm(fields=(wanted,)).matches(node.labels, node.name):
                yield Detail(where + _text(wanted), there=node.name)


def _text(wanted: Requirement) -> str:
    """Return a requirement as in a manifest: `zone In (a, b)`, `gpu Exists`, `cores Gt 4`."""
    values = ", ".join(wanted.values)
    listed = values if wanted.operator in (GT, LT) else f"({values})" if values else ""
    return f"{wanted.key} {wanted.operator} {listed}".rstrip()
