"""Two attempts of a pod side by side: which nodes got another verdict, and which scores moved. No pages here.

An attempt is one of /moorage/v1, with the names of all nodes that it refused."""

from __future__ import annotations

from collections import Counter

from moorage.web.pages.text import count
from moorage.web.source import Json

NOT_REFUSED = "not refused"
FACTS = {
    "profile": "Profile",
    "result": "Result",
    "node": "Node",
    "nominatedNode": "Nominated node",
    "plugin": "Failed or refused at",
    "message": "Message",
}
"""Field → what it is called."""


def facts(before: Json, after: Json) -> list[tuple[str, str, str]]:
    """What is said of the attempt as a whole, and differs."""
    pairs = [(name, str(before[field]), str(after[field])) for field, name in FACTS.items()]
    pairs.append(("Nodes", _nodes(before), _nodes(after)))
    return [(name, was or "-", now or "-") for name, was, now in pairs if was != now]


def _nodes(attempt: Json) -> str:
    nodes = attempt["nodes"]
    return f"{nodes['feasible']:,} feasible of {nodes['evaluated']:,} evaluated, {nodes['total']:,} in all"


def verdicts(attempt: Json) -> dict[str, str]:
    """Node → the plugin that refused it, and why."""
    return {
        node: f"{group['plugin']}: {'; '.join(group['reasons'])}"
        for group in attempt["refusals"]
        for node in group["nodeNames"]
    }


def changes(before: Json, after: Json) -> list[tuple[str, str, str]]:
    """Node, verdict before and after, where they differ; by name."""
    old, new = verdicts(before), verdicts(after)
    pairs = ((node, old.get(node, NOT_REFUSED), new.get(node, NOT_REFUSED)) for node in sorted({*old, *new}))
    return [pair for pair in pairs if pair[1] != pair[2]]


def groups(changed: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """How many nodes went from which verdict to which, the most first."""
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


def scores(before: Json, after: Json) -> list[tuple[str, str, str, str]]:
    """Of the best nodes of either attempt, where they differ: node, both totals, and the plugins whose points
    moved. Empty where an attempt has no scores on record."""
    old, new = _by_node(before), _by_node(after)
    if not old or not new:
        return []
    return [
        (node, _total(old.get(node)), _total(new.get(node)), _moved(old.get(node), new.get(node)))
        for node in dict.fromkeys([*new, *old])
        if old.get(node) != new.get(node)
    ]


def _by_node(attempt: Json) -> dict[str, Json]:
    return {each["node"]: each for each in attempt["scores"]}


def _total(score: Json | None) -> str:
    return "not among the best" if score is None else str(score["total"])


def _moved(old: Json | None, new: Json | None) -> str:
    if old is None or new is None:
        return ""
    was = {each["plugin"]: each["weighted"] for each in old["plugins"]}
    now = {each["plugin"]: each["weighted"] for each in new["plugins"]}
    return ", ".join(
        f"{plugin} {was.get(plugin, 0)} → {now.get(plugin, 0)}"
        for plugin in dict.fromkeys([*was, *now])
        if was.get(plugin, 0) != now.get(plugin, 0)
    )


def note(before: Json, after: Json) -> str:
    """What the records cannot tell."""
    if before["nodes"]["total"] != after["nodes"]["total"]:
        return "Between the attempts nodes came or went: one that was not there counts as not refused."
    if any(each["nodes"]["evaluated"] < each["nodes"]["total"] for each in (before, after)):
        return "Not all nodes were evaluated: one that was not counts as not refused."
    return ""
