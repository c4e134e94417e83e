"""What an upgrade of kube-scheduler changes, as the What-if page shows it."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.web.pages import shell
from moorage.web.pages.alike import merged
from moorage.web.pages.text import count, pod_url
from moorage.web.source import Json

PER_PAGE = 50
ASPECTS = {"feasible": "feasible nodes", "order": "order of nodes"}
WITHOUT_EFFECT = ("scores", "refusals")
SKIPPED = {"otherScheduler": "of other schedulers", "gated": "gated", "ending": "ending"}


def show(found: Json) -> None:
    """Show the preview of an upgrade."""
    with shell.card():
        shell.section(_headline(found))
        for text in _remarks(found):
            shell.text(text).classes("m-soft")
        if found["reasons"]:
            shell.table((("change", "Change"), ("text", "What it does"), ("pods", "Pods")), found["reasons"], "change")
    if found["pods"]:
        with shell.card():
            shell.section("Pods")
            columns = (
                ("pod", "Pod"), ("differs", "Differs in"), ("because", "Because of"), ("before", found["from"]),
                ("after", found["to"]),
            )  # fmt: skip
            rows = merged(_rows(found), "pod", ("differs", "because", "before", "after"))
            shell.table(columns, rows, "pod", PER_PAGE)
    _show_configuration(found)
    with shell.card():
        shell.section("Changes that do not depend on the state of the cluster")
        for each in found["alsoChanges"]:
            shell.text(each["text"])


def _headline(found: Json) -> str:
    versions = f"kube-scheduler {found['to']} than by {found['from']}"
    if not found["pods"]:
        return f"No pod would be decided differently by {versions}"
    return f"{len(found['pods']):,} of {count(found['judged'], 'pod')} would be decided differently by {versions}"


def _remarks(found: Json) -> Iterator[str]:
    if found["skipped"]:
        each = ", ".join(f"{number:,} {SKIPPED.get(why, why)}" for why, number in found["skipped"].items())
        yield f"Pods that were not judged: {each}."
    if found["withoutEffect"]:
        yield f"Differences without effect: {count(found['withoutEffect'], 'pod')} with other scores in the same order."
    for gone in found.get("removedObjects", ()):
        names = ", ".join(gone["names"])
        yield f"{found['to']} no longer serves {gone['kind']} of {gone['apiVersion']}. Delete {names} first."


def _rows(found: Json) -> Iterator[Json]:
    for each in found["pods"]:
        differs = [ASPECTS.get(aspect, aspect) for aspect in each["differs"] if aspect not in WITHOUT_EFFECT]
        message = "message" in each["differs"]
        yield {
            "pod": each["pod"],
            "pod_url": pod_url(each["pod"]),
            "differs": ", ".join(differs),
            "because": ", ".join(each["reasons"]),
            "before": _outcome(each["before"], message),
            "after": _outcome(each["after"], message),
        }


def _outcome(outcome: Json, with_message: bool) -> str:
    message = outcome["message"] if with_message else ""
    return f"{outcome['text']}: {message}" if message else str(outcome["text"])


def _show_configuration(found: Json) -> None:
    if found["configuration"]:
        with shell.card():
            shell.section("Configuration")
            rows = [{"key": number, **each} for number, each in enumerate(found["configuration"])]
            shell.table((("path", "Where"), ("text", "What changes")), rows, "key", PER_PAGE)
