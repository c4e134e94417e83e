"""The heat map: groups, order, shares, what a square says, and its use of the width; and the list of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.web.pages import grid
from moorage.web.pages.chart_style import between, contrast, ink_on
from moorage.web.pages.heat_map import (
    BELOW,
    CELL,
    COLOURS,
    COLUMNS,
    CORDONED,
    LARGE_CELL,
    MAX_LABEL,
    MAX_NAMED,
    NAMED_COLUMNS,
    TOP,
    heat_map,
)

ZONES: dict[str, Any] = {
    "names": ["full", "empty", "over", "bare"],
    "unschedulable": [False, True, False, False],
    "deleting": [False, False, True, False],
    "labels": {"zone": ["b", "a", "b", ""]},
    "amounts": {"cpu": {"allocatable": [4000, 4000, 2000, 0], "requested": [4000, 0, 3000, 0]}},
}


def test_squares_are_grouped_by_the_label_and_the_fullest_come_first():
    made = heat_map(ZONES, "cpu", "zone")
    assert made.nodes == ["bare", "empty", "over", "full"]
    assert made.options["visualMap"]["dimension"] == 2, "the share, not the text behind it"
    bare, empty, over, full = made.options["series"][0]["data"]
    assert bare["value"] == [0, 0, "-", "bare", "no cpu"]
    assert empty["value"] == [0, 1, 0.0, "empty", "0 of 4 cpu requested\ncordoned"]
    assert over["value"][4].endswith("being deleted")
    assert empty["itemStyle"]["borderColor"] == over["itemStyle"]["borderColor"] == CORDONED
    assert [over["value"][:3], full["value"][:3]] == [[0, 2, 150.0], [1, 2, 100.0]]
    assert made.options["yAxis"]["data"] == ["no label (1)", "a (1)", "b (2)"]


def test_an_unknown_label_or_resource_leaves_one_group_without_figures():
    made = heat_map(ZONES, "gpu", "rack")
    assert made.options["yAxis"]["data"] == ["all nodes (4)"]
    assert {heat_map_share(square) for square in made.options["series"][0]["data"]} == {"-"}


def test_what_is_measured_takes_the_place_of_what_is_requested_and_its_absence_is_said():
    cpu = {**ZONES["amounts"]["cpu"], "measured": [1000, 2000, 0, 0]}
    memory = {"allocatable": [1, 1, 1, 1], "requested": [1, 1, 1, 1]}
    nodes = {**ZONES, "amounts": {"cpu": cpu, "memory": memory}}
    made = heat_map(nodes, "cpu", "", "measured")
    assert made.nodes == ["empty", "full", "over", "bare"]
    assert made.options["series"][0]["data"][1]["value"][2:] == [25.0, "full", "1 of 4 cpu measured"]
    made = heat_map(nodes, "memory", "", "measured")
    assert {heat_map_share(square) for square in made.options["series"][0]["data"]} == {"-"}
    assert made.options["series"][0]["data"][0]["value"][4] == "memory: not measured"


def heat_map_share(square):
    return (square["value"] if isinstance(square, dict) else square)[2]


def many(number: int, label: str = "a") -> dict[str, Any]:
    return {
        "names": [f"n{place}" for place in range(number)],
        "unschedulable": [False] * number,
        "deleting": [False] * number,
        "labels": {"zone": [label] * number},
        "amounts": {"cpu": {"allocatable": [1000] * number, "requested": [0] * number}},
    }


def test_a_block_wraps_after_a_row_and_its_title_stands_at_the_first():
    number = MAX_NAMED + COLUMNS
    made = heat_map(many(number, "z" * 40), "cpu", "zone")
    rows = -(-number // COLUMNS)
    assert made.options["series"][0]["data"][-1][:2] == [(number - 1) % COLUMNS, rows - 1]
    assert made.options["yAxis"]["data"] == [f"{'z' * MAX_LABEL} ({number})", *[""] * (rows - 1)]


@pytest.mark.parametrize(
    ("number", "columns"),
    [(1, 1), (2, 2), (NAMED_COLUMNS, NAMED_COLUMNS), (MAX_NAMED, NAMED_COLUMNS), (MAX_NAMED + 1, COLUMNS)],
)
def test_the_squares_fill_the_width_and_have_names_while_there_are_few(number, columns):
    made = heat_map(many(number), "cpu", "")
    assert len(made.options["xAxis"]["data"]) == columns
    named = number <= MAX_NAMED
    assert made.options["series"][0]["label"]["show"] is named
    assert made.height == (LARGE_CELL if named else CELL) * -(-number // columns) + TOP + BELOW


def test_there_is_one_scale_with_one_pair_of_ends():
    scale = heat_map(ZONES, "cpu", "").options["visualMap"]
    assert (scale["text"], scale["calculable"]) == (["100 % requested", "0 %"], False)


def test_names_can_be_read_on_every_colour_of_the_scale():
    for share in range(101):
        colour = between(COLOURS, share / 100)
        assert contrast(ink_on(colour), colour) >= 4.5, (share, colour)
    assert heat_map(ZONES, "cpu", "").options["series"][0]["data"][1]["label"]["color"] == "#000000"


def test_the_list_of_nodes_has_their_state_and_the_requested_shares():
    assert grid._listed(ZONES) == {
        "node": ["full", "empty", "over", "bare"],
        "state": ["", "cordoned", "being deleted", ""],
        "r0": [100.0, 0.0, 150.0, None],
    }
