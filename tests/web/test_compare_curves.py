"""The curves of the page Compare: colours and lines of configurations and seeds, and the marks of the time axis."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from moorage.web.pages.compare_page import _curves, step
from moorage.web.sources.folder_source import FolderSource
from tests.web.sources.test_folder_source import RUN


def test_seeds_of_a_configuration_have_one_colour_and_lines_of_their_own(tmp_path):
    for name in ("plain", "packed"):
        for seed in (0, 1):
            replace(RUN, name=name, seed=seed).write(tmp_path / f"{name}{seed}")
    lines = _curves(asyncio.run(FolderSource([tmp_path]).results()), "pending")["series"]
    assert [line["name"] for line in lines] == ["packed, seed 0", "packed, seed 1", "plain, seed 0", "plain, seed 1"]
    looks = {(line["itemStyle"]["color"], line["lineStyle"]["type"]) for line in lines}
    assert len(looks) == 4
    assert len({colour for colour, _ in looks}) == 2


@pytest.mark.parametrize(("seconds", "expected"), [(7, 1), (1200, 300), (86_400, 21_600), (10**9, 1.25e8)])
def test_marks_of_the_axis_of_time_are_round(seconds, expected):
    assert step(seconds) == expected
