"""Facts about node labels that a pod asks for and no node has, with the label that may have been meant."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from moorage.api.node_selectors import RequiredNodeAffinity
from moorage.api.recent import Recent
from moorage.api.selectors import EXISTS, IN, Requirement
from moorage.framework.nodes import Nodes

MAX_COMPARED = 500
"""Keys and values that are compared with a mistyped one: the most common."""
MAX_SHOWN = 5
SIMILAR = 0.75
_REMEMBERED = 64
_LONGEST = 64
"""Longer texts are not compared: that takes time that grows with the square of their length."""


class LabelCounts(dict[str, Counter[str]]):
    """Key → value → number of nodes that stay."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        self._corrected: Recent[tuple[str, str], tuple[str, str] | tuple[()]] = Recent(_REMEMBERED)
        for view in nodes:
            if view.node.metadata.deletion_timestamp is None:
                for key, value in view.labels.items():
                    self.setdefault(key, Counter())[value] += 1

    def similar_key(self, key: str) -> str:
        """Return the label key that is most similar, or an empty text."""
        return similar(key, {known: values.total() for known, values in self.items()})

    def corrected(self, key: str, value: str) -> tuple[str, str] | None:
        """Return the label that may have been meant by one that no node has; None if there is nothing similar.
        Remedies ask for every node again, so the answer is remembered."""
        found = self._corrected.get((key, value))
        if found is None:
            found = self._corrected.put((key, value), self._correct(key, value) or ())
        return found or None

    def _correct(self, key: str, value: str) -> tuple[str, str] | None:
        if key not in self:
            meant = self.similar_key(key)
            return (meant, value) if meant and value in self[meant] else None
        meant = "" if value in self[key] else similar(value, self[key])
        return (key, meant) if meant else None


def label_counts(nodes: Nodes) -> LabelCounts:
    """Count the labels of all nodes, without nodes that are being deleted. The counts are kept until a node changes."""
    return nodes.kept("label_facts", LabelCounts)


def similar(text: str, known: Mapping[str, int]) -> str:
    """Return the most similar of the known texts, or an empty text."""
    if len(text) > _LONGEST:
        return ""
    common = [each for each, _ in Counter(known).most_common(MAX_COMPARED) if len(each) <= _LONGEST]
    return next(iter(difflib.get_close_matches(text, common, 1, SIMILAR)), "")


def selector_facts(required: RequiredNodeAffinity, nodes: Nodes) -> Iterator[str]:
    """Yield the labels that no node has, and the nodes that match if they are few."""
    counts, silent = label_counts(nodes), True
    for wanted in _requirements(required):
        if fact := _missing(wanted, counts):
            silent = False
            yield fact
    if silent:
        matching = [view.name for view in nodes if required.matches(view.labels, view.name)]
        if not matching:
            yield "No node matches the node selector and the required node affinity as a whole."
        elif len(matching) <= MAX_SHOWN:
            names = " and ".join(filter(None, (", ".join(matching[:-1]), matching[-1])))
            yield f"Only {names} {'matches' if len(matching) == 1 else 'match'} the node selector and node affinity."


def _requirements(required: RequiredNodeAffinity) -> Iterable[Requirement]:
    selector = required.selector.requirements if required.selector is not None else ()
    # Of several terms one is enough, so none of them decides alone.
    terms = required.terms.terms if required.terms is not None else ()
    return (*selector, *(terms[0].labels if len(terms) == 1 else ()))


def _missing(wanted: Requirement, counts: LabelCounts) -> str:
    key, values = wanted.key, sorted(wanted.values)
    if wanted.operator not in (IN, EXISTS) and not (values and wanted.operator == "="):
        return ""
    if key not in counts:
        meant = counts.similar_key(key)
        hint = f"; did you mean {meant} ({_nodes(counts[meant].total())})?" if meant else "."
        return f"No node has the label {key}{hint}"
    if not values or any(value in counts[key] for value in values):
        return ""
    shown = ", ".join(f"{value} ({_nodes(number)})" for value, number in counts[key].most_common(MAX_SHOWN))
    more = f" and {len(counts[key]) - MAX_SHOWN} more" if len(counts[key]) > MAX_SHOWN else ""
    asked = " or ".join(f"{key}={value}" for value in values[:MAX_SHOWN])
    return f"No node has the label {asked}; its values here are {shown}{more}."


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def values_here(key: str, nodes: Nodes) -> str:
    """Return the values of a node label as a sentence."""
    counts = label_counts(nodes).get(key)
    if not counts:
        return f"No node has the label {key}."
    more = f" and {len(counts) - MAX_SHOWN} more" if len(counts) > MAX_SHOWN else ""
    return f"Values of {key} here: {', '.join(sorted(counts)[:MAX_SHOWN])}{more}."
