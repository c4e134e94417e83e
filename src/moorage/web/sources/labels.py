"""The labels of nodes in columns, as far as nodes can be grouped by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_VALUES = 200
"""Of a label by which nodes may be grouped: a group for each node shows nothing."""


def label_columns(labels: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Key → value on each node, empty where a node does not have it; without keys of too many values."""
    columns = {}
    for key in dict.fromkeys(key for each in labels for key in each):
        values = [each.get(key, "") for each in labels]
        if len(set(values)) <= MOST_VALUES:
            columns[key] = values
    return columns
