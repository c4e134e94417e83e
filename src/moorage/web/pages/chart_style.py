"""Colours of charts: text and lines of the theme, and text on coloured squares.

A canvas does not follow the style sheet, so the browser looks the colours up whenever a chart gets its options.
"""

from __future__ import annotations

from moorage.web.source import Json


def theme_colour(name: str) -> Json:
    """Return the option `color` with the value that a variable of style.css has in the present theme."""
    return {":color": f"getComputedStyle(document.body).getPropertyValue('--{name}').trim()"}


SOFT = theme_colour("soft")
"""The style of labels."""
GRID = {"splitLine": {"lineStyle": theme_colour("line")}, "axisLine": {"lineStyle": theme_colour("line")}}
"""The style of the lines of an axis."""


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as `#17212b`, as WCAG 2 defines it."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21. Text needs 4.5."""
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def between(colours: list[str], share: float) -> str:
    """Return the colour at a share (0 to 1) of a scale of evenly spaced colours."""
    place = max(0.0, min(1.0, share)) * (len(colours) - 1)
    first = min(int(place), len(colours) - 2)
    rest = place - first
    pairs = ((int(colours[first][at : at + 2], 16), int(colours[first + 1][at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * rest):02x}" for low, high in pairs)


def ink_on(colour: str) -> str:
    """Return black or white, whichever is easier to read on a colour."""
    return "#000000" if contrast("#000000", colour) > contrast("#ffffff", colour) else "#ffffff"
