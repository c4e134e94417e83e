"""The state of a pod in a sentence: pending, nominated, or on its node, and why there."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from moorage.endpoints.answers import AttemptDetails, NodePoints
from moorage.web.pages import explanation_view as view
from moorage.web.pages import shell
from moorage.web.pages.queue_page import PLACES
from moorage.web.pages.text import clock, node_url
from moorage.web.source import Json, PodContent

WELL = frozenset({"placed", "schedulable"})
PLAIN = frozenset({"placed", "schedulable", "pending"})
"""States that need no other sentence than the number of feasible nodes."""


def show_explained(found: Json) -> None:
    """Show the state of a pod of a cluster that was read."""
    total, feasible, node = found["nodes"]["total"], found["nodes"]["feasible"], found["assignedTo"]
    state = found["state"]
    with shell.card():
        if state not in PLAIN:
            shell.text(found["headline"]).classes("m-bad" if state == "gated" else "m-warn")
        elif node:
            with ui.element("div").classes("m-row"):
                ui.label("Scheduled on").classes("m-good")
                ui.link(node, node_url(node)).classes("m-text")
                ui.label(f"{feasible:,} of {total:,} nodes would be feasible now")
        elif feasible:
            ui.label(f"Schedulable: {feasible:,} of {total:,} nodes are feasible").classes("m-good")
        else:
            ui.label(f"Pending: 0 of {total:,} nodes are feasible").classes("m-bad")
        for fact in found["facts"]:
            shell.text(fact)
        if node:
            shell.text(why_there(found))
        if found["message"]:
            shell.text(found["message"]).classes("m-mono")
        shell.text(f"Profile: {found['profile']}").classes("m-soft")


def show_recorded(content: PodContent, key: str) -> None:
    """Show the state of a pod that a running scheduler knows."""
    with shell.card():
        if not content.exists:
            says = f"Pod {key} does not exist." if not content.records else f"Pod {key} no longer exists."
            ui.label(says).classes("m-bad")
            way_out = "Attempts of a deleted pod are still on record." if content.records else "Check its name."
            ui.label(f"{way_out} The Queue page lists the pending pods.").classes("m-soft")
        elif content.waiting is not None:
            _show_pending(content)
        else:
            _show_assigned(content)


def _show_pending(content: PodContent) -> None:
    waiting = content.waiting
    assert waiting is not None
    with ui.element("div").classes("m-row"):
        ui.label(PLACES[waiting.place][0]).classes("m-bad" if waiting.plugins else "m-good")
        if waiting.since is not None:
            ui.label(f"since {clock(waiting.since)}").classes("m-soft")
    if waiting.nominated_node:
        view.show_preemption(
            "Nominated. The pod waits until these pods have left", waiting.nominated_node, victims_of(content)
        )
    shell.text(waiting.why)
    if waiting.message and not content.records:
        shell.text(waiting.message).classes("m-mono")
    for each in waiting.wakes:
        shell.text(f"{each.plugin} may wake it on: {', '.join(each.events)}").classes("m-soft")


def _show_assigned(content: PodContent) -> None:
    newest = content.records[-1] if content.records else None
    node = content.node or (newest.node if newest is not None and newest.result == "scheduled" else "")
    if not node:
        ui.label("Not pending in this scheduler").classes("m-warn")
        ui.label("Another scheduler is responsible for the pod, or it has finished.").classes("m-soft")
        return
    with ui.element("div").classes("m-row"):
        ui.label("Scheduled on").classes("m-good")
        ui.link(node, node_url(node)).classes("m-text")
    if newest is not None and newest.node == node:
        shell.text(why_chosen(newest))


def needs_copy(content: PodContent) -> bool:
    """Return whether only a copy of the cluster can say more: what would help a pending pod, and why a pod is on its
    node if that attempt is not on record."""
    if content.waiting is not None:
        return content.waiting.place in ("active", "backoff", "unschedulable", "gated")
    newest = content.records[-1] if content.records else None
    return bool(content.node) and (newest is None or newest.node != content.node)


def victims_of(content: PodContent) -> Sequence[str]:
    """Return the victims of the attempt that nominated the pod, if it is on record."""
    node = content.waiting.nominated_node if content.waiting is not None else ""
    named = (each.victims for each in reversed(content.records) if each.nominated_node == node and each.victims)
    return next(named, ())


def why_chosen(record: AttemptDetails) -> str:
    """Return why an attempt chose its node."""
    nodes, node = record.nodes, record.node
    if nodes.feasible == 1:
        return f"{node} was the only feasible node of {nodes.total:,}."
    best = f"{node} had the highest score of {nodes.feasible:,} feasible nodes"
    if len(record.scores) < 2 or record.scores[0].node != node:
        return f"{best}. The scores of this attempt are not on record."
    return f"{best}: {_ahead(record.scores, record.margin)}"


def _ahead(scores: Sequence[NodePoints], margin: int | None) -> str:
    first, second = scores[0], scores[1]
    points = f"{first.total} points"
    if not margin:
        return f"{points}, as {second.node}; one of the best was chosen at random."
    other = {each.plugin: each.weighted for each in second.plugins}
    more = {each.plugin: each.weighted - other.get(each.plugin, 0) for each in first.plugins}
    deciding = [name for name, ahead in sorted(more.items(), key=lambda item: -item[1]) if ahead > 0]
    by = f", decided by {', '.join(deciding)}" if deciding else ""
    return f"{points}, {margin} more than {second.node}{by}."


def why_there(found: Json) -> str:
    """Return how the node of a pod compares with the others now, from an explanation."""
    placement, node = found["placement"], found["assignedTo"]
    if placement is None or (not placement["scores"] and not placement["ownRefused"]):
        return ""
    if placement["ownRefused"]:
        return f"If the pod were created now, {node} would reject it: {'; '.join(placement['ownRefused'])}."
    best = placement["scores"][0]
    own = placement["own"]
    if own is not None:
        behind = best["total"] - own["total"]
        ahead = f"{best['node']} has {behind} more" if behind else f"{best['node']} has as many"
        return f"The cluster has changed since: {node} has {own['total']} points now, and {ahead}."
    if found["nodes"]["feasible"] == 1:
        return f"{node} is the only feasible node."
    by = f", decided by {', '.join(placement['decidedBy'])}" if placement["decidedBy"] else ""
    margin = placement["margin"]
    lead = f"{margin} more than the second{by}" if margin else "as many as the second"
    return f"{node} is still the best node: {best['total']} points, {lead}."
