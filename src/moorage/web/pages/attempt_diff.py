"""Compares two attempts of a pod: nodes with another verdict, and scores that changed. Knows no page.

Both attempts must have the names of all nodes that they rejected.
"""

from __future__ import annotations

from collections import Counter

from moorage.endpoints.answers import AttemptDetails, NodePoints
from moorage.web.pages.text import count
from moorage.web.source import Json

NOT_REJECTED = "not rejected"
FACTS = {
    "profile": "Profile",
    "result": "Result",
    "node": "Node",
    "nominated_node": "Nominated node",
    "plugin": "Failed or rejected by",
    "message": "Message",
}
"""Field → its label."""


def facts(before: AttemptDetails, after: AttemptDetails) -> list[tuple[str, str, str]]:
    """Return label and both values of the fields that differ."""
    pairs = [(name, str(getattr(before, field)), str(getattr(after, field))) for field, name in FACTS.items()]
    pairs.append(("Nodes", _nodes(before), _nodes(after)))
    return [(name, was or "-", now or "-") for name, was, now in pairs if was != now]


def _nodes(attempt: AttemptDetails) -> str:
    nodes = attempt.nodes
    return f"{nodes.feasible:,} feasible of {nodes.evaluated:,} evaluated ({nodes.total:,} in total)"


def verdicts(attempt: AttemptDetails) -> dict[str, str]:
    """Return node → the plugin that rejected it, and why."""
    return {
        node: f"{group.plugin}: {'; '.join(group.reasons)}" for group in attempt.refusals for node in group.node_names
    }


def changes(before: AttemptDetails, after: AttemptDetails) -> list[tuple[str, str, str]]:
    """Return node and both verdicts where they differ, by name."""
    old, new = verdicts(before), verdicts(after)
    pairs = ((node, old.get(node, NOT_REJECTED), new.get(node, NOT_REJECTED)) for node in sorted({*old, *new}))
    return [pair for pair in pairs if pair[1] != pair[2]]


def groups(changed: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return how many nodes changed from which verdict to which, the largest group first."""
    found = Counter((was, now) for _, was, now in changed)
    return [(count(nodes, "node"), was, now) for (was, now), nodes in found.most_common()]


def table(changed: list[tuple[str, str, str]], heads: tuple[str, str]) -> Json:
    """The changed nodes in the form of an explanation's table, with the two attempts as columns."""
    texts = list(dict.fromkeys(text for _, *pair in changed for text in pair))
    numbers = {text: number for number, text in enumerate(texts, 1)}
    columns = [
        {"plugin": head, "reasons": texts, "verdicts": [numbers[row[place]] for row in changed]}
        for place, head in enumerate(heads, 1)
    ]
    return {"nodes": [node for node, _, _ in changed], "scores": [], "plugins": columns}


def scores(before: AttemptDetails, after: AttemptDetails) -> list[tuple[str, str, str, str]]:
    """Return the best nodes of either attempt whose scores differ: node, both totals, and the plugins whose
    points changed. Empty if an attempt has no scores on record."""
    old, new = ({each.node: each for each in attempt.scores} for attempt in (before, after))
    if not old or not new:
        return []
    return [
        (node, _total(old.get(node)), _total(new.get(node)), _changed_points(old.get(node), new.get(node)))
        for node in dict.fromkeys([*new, *old])
        if old.get(node) != new.get(node)
    ]


def _total(score: NodePoints | None) -> str:
    return "not among the best" if score is None else str(score.total)


def _changed_points(old: NodePoints | None, new: NodePoints | None) -> str:
    if old is None or new is None:
        return ""
    was, now = ({each.plugin: each.weighted for each in score.plugins} for score in (old, new))
    return ", ".join(
        f"{plugin} {was.get(plugin, 0)} → {now.get(plugin, 0)}"
        for plugin in dict.fromkeys([*was, *now])
        if was.get(plugin, 0) != now.get(plugin, 0)
    )


def note(before: AttemptDetails, after: AttemptDetails) -> str:
    """Return what the records cannot show."""
    if before.nodes.total != after.nodes.total:
        return "Nodes were added or removed between the attempts; a missing node counts as not rejected."
    if any(each.nodes.evaluated < each.nodes.total for each in (before, after)):
        return "Not all nodes were evaluated; a node that was not evaluated counts as not rejected."
    return ""
