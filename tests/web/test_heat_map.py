"""The heat map: groups, order, shares, and what a square says."""

from __future__ import annotations

from typing import Any

from moorage.web.pages.heat_map import CELL, COLUMNS, CORDONED, FEW, LARGE_CELL, MAX_LABEL, heat_map

ZONES: dict[str, Any] = {
    "names": ["full", "empty", "over", "bare"],
    "unschedulable": [False, True, False, False],
    "labels": {"zone": ["b", "a", "b", ""]},
    "amounts": {"cpu": {"allocatable": [4000, 4000, 2000, 0], "requested": [4000, 0, 3000, 0]}},
}


def test_squares_are_grouped_by_the_label_and_the_fullest_come_first():
    made = heat_map(ZONES, "cpu", "zone")
    assert made.nodes == ["bare", "empty", "over", "full"]
    assert made.options["visualMap"]["dimension"] == 2, "the share, not the text behind it"
    bare, empty, over, full = made.options["series"][0]["data"]
    assert bare == [0, 0, "-", "bare", "no cpu"]
    assert empty["value"] == [0, 2, 0.0, "empty", "0 of 4 cpu requested\ncordoned"]
    assert empty["itemStyle"]["borderColor"] == CORDONED
    assert [over[:3], full[:3]] == [[0, 4, 150.0], [1, 4, 100.0]]
    assert made.options["yAxis"]["data"] == ["no label (1)", "", "a (1)", "", "b (2)"]


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
    assert made.options["series"][0]["data"][1][2:] == [25.0, "full", "1 of 4 cpu measured"]
    made = heat_map(nodes, "memory", "", "measured")
    assert {heat_map_share(square) for square in made.options["series"][0]["data"]} == {"-"}
    assert made.options["series"][0]["data"][0][4] == "memory: not measured"


def heat_map_share(square):
    return (square["value"] if isinstance(square, dict) else square)[2]


def many(number: int, label: str = "a") -> dict[str, Any]:
    amounts = {"cpu": {"allocatable": [1000] * number, "requested": [0] * number}}
    names = [f"n{place}" for place in range(number)]
    return {"names": names, "unschedulable": [False] * number, "labels": {"zone": [label] * number}, "amounts": amounts}


def test_a_block_wraps_after_a_row_and_its_title_stands_at_the_first():
    made = heat_map(many(COLUMNS + 1, "z" * 40), "cpu", "zone")
    assert made.options["series"][0]["data"][-1][:2] == [0, 1]
    assert made.options["yAxis"]["data"] == [f"{'z' * MAX_LABEL} (81)", ""]


def test_squares_are_large_while_there_are_few():
    rows = -(-FEW // COLUMNS)
    assert heat_map(many(FEW), "cpu", "").height == LARGE_CELL * rows + 70
    assert heat_map(many(FEW + 1), "cpu", "").height == CELL * (rows + 1) + 70
