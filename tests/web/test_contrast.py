"""Text in style.css can be read in both themes: a contrast of at least 4.5 (WCAG 2, level AA)."""

from __future__ import annotations

import re

import pytest

from moorage.web.pages import shell
from moorage.web.pages.chart_style import contrast

ENOUGH = 4.5
TEXT = ("ink", "soft", "accent", "good", "bad", "warn")
BEHIND = ("paper", "page", "chip", "chosen")


def themes() -> dict[str, dict[str, str]]:
    """Theme → variable → colour."""
    css = shell.CSS.read_text()
    blocks = {"light": r":root", "dark": r"body\.body--dark"}
    return {
        theme: dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", re.findall(rf"^{start} {{(.*?)}}", css, re.M | re.S)[0]))
        for theme, start in blocks.items()
    }


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("text", TEXT)
def test_every_colour_of_text_can_be_read_on_every_background(theme, behind, text):
    colours = themes()[theme]
    assert contrast(colours[text], colours[behind]) >= ENOUGH, (colours[text], colours[behind])


def test_text_has_no_other_colours_than_those_of_a_theme():
    """Colours outside the two blocks of variables would not follow the theme."""
    css = re.sub(r"^(:root|body\.body--dark) {.*?}", "", shell.CSS.read_text(), flags=re.M | re.S)
    own = re.findall(r"(?<![-\w])color: (?!var\(|inherit)[^;]+;", css)
    assert own == ["color: #ffffff;"], "only the buttons of the upload field, on the primary colour"
    assert contrast("#ffffff", shell.PRIMARY) >= ENOUGH
    assert contrast(shell.PRIMARY, themes()["light"]["paper"]) >= ENOUGH
