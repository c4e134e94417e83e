"""docs/api-v1.md has every field and parameter of /moorage/v1, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.docs.snippets import ROOT
from tests.endpoints.asking import QUERIES, Asker

PAGE = (ROOT / "docs" / "api-v1.md").read_text()
MAPS = {"labels", "allocatable", "requested", "requests", "places"}
"""Their keys are data."""


def documented(section: str, table: str) -> set[str]:
    """The names in the first column of a section's table."""
    [text] = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    [rows] = re.findall(rf"^\| {table} \|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    firsts = [row.split("|")[1] for row in rows.splitlines()]
    return {name for first in firsts for name in re.findall(r"`([^`]+)`", first)}


def fields(value: Any, opaque: set[str], prefix: str = "") -> Iterator[str]:
    """Dotted names; lists are looked at by all their items."""
    for key, inner in value.items():
        items = inner if isinstance(inner, list) else [inner]
        deeper = [item for item in items if isinstance(item, dict)]
        if not deeper or key in opaque or key in MAPS:
            yield f"{prefix}{key}"
        for item in deeper if key not in opaque and key not in MAPS else ():
            yield from fields(item, opaque, f"{prefix}{key}{'[]' if isinstance(inner, list) else ''}.")


@pytest.fixture(scope="module")
def ask() -> Iterator[Asker]:
    with Cluster() as cluster:
        cluster.add(make_nodes(2, cpu="2"), make_node("tainted", taints=["gpu=yes:NoSchedule"]))
        cluster.settle()
        cluster.add(make_pod("big", cpu="4"), make_pod("small", cpu="1"))
        cluster.settle()
        yield Asker(cluster)


FULL = ("An attempt", "An attempt in full")
SECTIONS: list[tuple[tuple[str, ...], str, str, set[str]]] = [
    (("/moorage/v1/queue",), "queue", "", {"pods"}),
    (("A pending pod",), "queue", "pods", set()),
    (("A pending pod",), "records?pod=default/big", "waiting", set()),
    (("/moorage/v1/records",), "records?pod=default/big", "", {"waiting", "records"}),
    (FULL, "records?pod=default/big", "records", {"extenders", "scores"}),
    (FULL, "records?pod=default/small", "records", {"extenders", "refusals"}),
    (("/moorage/v1/attempts",), "attempts", "", {"attempts"}),
    (("An attempt",), "attempts", "attempts", set()),
    ((*FULL, "/moorage/v1/attempts/SEQUENCE"), "attempts/1", "", {"extenders", "scores"}),
    (("/moorage/v1/nodes",), "nodes", "", {"nodes"}),
    (("A node",), "nodes?search=tainted", "nodes", set()),
    (("A node", "/moorage/v1/nodes/NAME"), "nodes/NODE", "", {"taints"}),
    (("/moorage/v1/summary",), "summary", "", {"pods"}),
]


@pytest.mark.parametrize(("sections", "path", "part", "opaque"), SECTIONS)
def test_the_fields_of_real_answers_are_those_on_the_page(ask, sections, path, part, opaque):
    answer = ask.get(path.replace("NODE", ask.cluster.record("small").node))
    shown = answer[part] if part else answer
    shown = shown[0] if isinstance(shown, list) else shown
    named = {name for section in sections for name in documented(section, "field")}
    merged = {re.sub(rf"^({'|'.join(opaque)})\[\].*", r"\1", name) for name in named} if opaque else named
    assert set(fields(shown, opaque)) == merged


def test_the_fields_of_extenders_are_those_of_the_record():
    from moorage.runtime.record import DecisionRecord, ExtenderVerdict

    record = DecisionRecord("default/p", "u", "default-scheduler", 1, 0.0)
    record.extenders = (ExtenderVerdict("e", 1),)
    found = set(fields({"extenders": record.to_dict()["extenders"]}, set()))
    assert found == {name for name in documented("An attempt in full", "field") if "extenders" in name}


def test_the_parameters_of_a_snapshot_are_those_on_the_page():
    known = msgspec.structs.fields(QUERIES["snapshot"])
    assert documented("/moorage/v1/snapshot", "query") == {field.name for field in known}


@pytest.mark.parametrize(
    ("section", "view"),
    [(f"/moorage/v1/{view}", view) for view in ("queue", "records", "attempts", "nodes")]
    + [("/moorage/v1/attempts/SEQUENCE", "attempt"), ("/moorage/v1/nodes/NAME", "node")],
)
def test_the_parameters_are_those_on_the_page_with_their_bounds(section, view):
    known = msgspec.structs.fields(QUERIES[view])
    assert documented(section, "query") == {field.name for field in known}
    schema = msgspec.json.schema(QUERIES[view])["$defs"][QUERIES[view].__name__]["properties"]["limit"]
    [(usual, most)] = re.findall(
        rf"^## {section}\n(?:(?!^## ).*\n)*?\| `limit` \| .*?(\d+), at most (\d+)", PAGE, re.MULTILINE
    )
    assert (int(usual), int(most)) == (schema["default"], schema["maximum"])
