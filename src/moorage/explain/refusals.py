"""Refusals in groups: which plugins refuse how many nodes for one reason, with the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from moorage.api.quantity import format_number
from moorage.explain.judging import Judgement
from moorage.framework.nodes import IntArray, Nodes
from moorage.framework.optional import Detail, Figure
from moorage.framework.status import SUCCESS
from moorage.runtime.questions import PluginVerdict

MAX_EXAMPLES = 5
"""Number of nodes that are named for a group."""


class RefusalGroup(msgspec.Struct, frozen=True, rename={"only": "onlyReason", "names": "examples"}):
    """The nodes that one plugin refuses for one reason."""

    plugin: str
    """Its name; several names, joined by commas, if plugins refuse the same nodes for the same reason."""
    reasons: tuple[str, ...]
    codes: Mapping[str, int]
    """Code → number of nodes. Preemption may help on some of them and not on others."""
    nodes: int
    only: int
    """Number of nodes that nothing else refuses."""
    names: tuple[str, ...]
    """Names of the first of them."""
    details: tuple[str, ...] = ()
    """The figures behind the reason, over all these nodes."""


def refusal_groups(judgement: Judgement) -> list[RefusalGroup]:
    """Group the refusals by reason, the largest group first. Plugins that refuse the same nodes for the same reason,
    such as a claim that does not exist, share a group."""
    per_row = judgement.refusals_per_row()
    merged: dict[tuple[tuple[str, ...], bytes], list[_Part]] = {}
    failed = []
    for verdict in judgement.verdicts:
        by_reasons: dict[tuple[str, ...], list[int]] = {}
        for number, status in enumerate(verdict.statuses.verdicts):
            if number and verdict.statuses.counts[number]:
                by_reasons.setdefault(status.reasons, []).append(number)
        for reasons, numbers in by_reasons.items():
            hit = judgement.nodes.where(np.isin(judgement.nodes.take(verdict.statuses.ids), numbers))
            merged.setdefault((reasons, hit.rows.tobytes()), []).append(_Part(verdict, numbers, hit))
        if verdict.error:
            failed.append(RefusalGroup(verdict.plugin.name, (verdict.error,), {"Error": 0}, 0, 0, ()))
    groups = [_group(judgement, parts, per_row) for parts in merged.values()]
    return sorted([*groups, *failed], key=lambda group: -group.nodes)


class _Part(NamedTuple):
    """The refusals of one plugin for one reason. Their numbers differ in the code alone."""

    verdict: PluginVerdict
    numbers: list[int]
    hit: Nodes


def _group(judgement: Judgement, parts: Sequence[_Part], per_row: IntArray) -> RefusalGroup:
    verdict, numbers, hit = parts[0]
    statuses = verdict.statuses
    details: dict[str, None] = {}
    for part in parts:
        views = list(part.hit) if part.verdict.for_all is SUCCESS else list(part.hit)[:1]
        details.update(dict.fromkeys(summary([judgement.details(part.verdict, view) for view in views])))
    return RefusalGroup(
        ", ".join(part.verdict.plugin.name for part in parts),
        statuses.verdicts[numbers[0]].reasons,
        {statuses.verdicts[number].code.label: statuses.counts[number] for number in numbers},
        len(hit),
        int(np.count_nonzero(per_row[hit.rows] == len(parts))),
        tuple(hit.names[:MAX_EXAMPLES]),
        tuple(details),
    )


def summary(per_node: Sequence[Sequence[Detail]]) -> list[str]:
    """Merge the details of many nodes into a line for each subject, the most common first.

    A line has the number of nodes and the range of what is missing there."""
    by_subject: dict[str, list[Detail]] = {}
    for details in per_node:
        for detail in details:
            by_subject.setdefault(detail.subject, []).append(detail)
    ordered = sorted(by_subject.items(), key=lambda item: -len(item[1]))
    if len(per_node) == 1:
        return [detail_text(same[0]) for _, same in ordered]
    return [_range_text(subject, same) for subject, same in ordered]


def _range_text(subject: str, same: Sequence[Detail]) -> str:
    nodes = f"{len(same)} node" if len(same) == 1 else f"{len(same)} nodes"
    missing = [detail.missing for detail in same if detail.missing is not None]
    if not missing:
        return f"{subject} ({nodes})"
    least, most = (figure_text(number, same[0].unit) for number in (min(missing), max(missing)))
    amount = least if least == most else f"{least} to {most}"
    return f"{subject}: {amount} {'over' if _is_limit(same[0]) else 'short'} on {nodes}"


def detail_text(detail: Detail) -> str:
    """Render one detail on one node: `cpu: 2 requested, 500m free (1500m short)`."""
    asked, there = figure_text(detail.asked, detail.unit), figure_text(detail.there, detail.unit)
    pods = ", ".join(detail.pods)
    missing = "" if detail.missing is None else figure_text(detail.missing, detail.unit)
    if _is_limit(detail):
        said = f"{there} conflicting" if detail.asked == 0 else f"limit {asked}, actual {there} ({missing} over)"
    elif isinstance(detail.asked, int) and isinstance(detail.there, int):
        # A resource is named by one word or has a unit; other figures count pods or other objects.
        is_resource = detail.unit or " " not in detail.subject
        words = ("requested", "free") if is_resource else ("required", "available")
        said = f"{asked} {words[0]}, {there} {words[1]} ({missing} short)"
    else:
        found = there if " " in there or not there else f"found {there}"
        said = ", ".join(part for part in (asked and f"{asked} requested", found) if part)
    if not said:
        return f"{detail.subject}: in use by {pods}" if pods else detail.subject
    return f"{detail.subject}: {said} ({pods})" if pods else f"{detail.subject}: {said}"


def _is_limit(detail: Detail) -> bool:
    """Whether `asked` is a limit that is exceeded, and not an amount that the node lacks."""
    asked, there, missing = detail.asked, detail.there, detail.missing
    if not isinstance(asked, int) or not isinstance(there, int) or missing is None:
        return False
    return missing != asked - there


def figure_text(number: Figure, unit: str = "") -> str:
    return format_number(number, unit) if isinstance(number, int) else number or ""
