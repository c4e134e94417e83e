"""Compare an answer of `moorage explain` with a row of the table of stuck pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.cluster.objects import Json
from tests.explain.stuck_pods import NAMESPACE, Stuck


@dataclass(frozen=True)
class Answer:
    """What the command printed, its exit code, and the same as JSON."""

    shown: str
    exit: int
    data: Json


def check(row: Stuck, answer: Answer) -> None:
    """Raise an AssertionError that shows the whole answer if anything is missing."""
    faults = list(_faults(row, answer))
    assert not faults, "\n".join([*faults, "", answer.shown])


def _faults(row: Stuck, answer: Answer) -> Iterator[str]:
    headline = answer.data["headline"]
    if not re.fullmatch(rf"{NAMESPACE}/{re.escape(row.name)} {row.first}", headline):
        yield f"headline: {headline}"
    if not answer.shown.startswith(headline):
        yield "the headline is not the first line"
    if answer.exit != row.exit:
        yield f"exit code {answer.exit}, not {row.exit}"
    yield from (f"not said: {fact}" for fact in row.facts if fact not in answer.shown)
    yield from (f"said: {text}" for text in row.never if text in answer.shown)
    remedies = answer.data["remedies"]
    texts = [remedy["text"] for remedy in remedies]
    if not row.remedy:
        yield from (f"an unexpected remedy: {text}" for text in texts)
        return
    if not texts or not texts[0].startswith(row.remedy):
        yield f"the first remedy is not {row.remedy!r}: {texts}"
    elif row.command not in remedies[0]["command"]:
        yield f"the command of the first remedy: {remedies[0]['command']}"
    for expected in row.further:
        if not any(text.startswith(expected) for text in texts):
            yield f"not proposed: {expected}"
    if leaving := [remedy["text"] for remedy in remedies if remedy["node"] == "dying"]:
        yield f"remedies with a node that is being deleted: {leaving}"
