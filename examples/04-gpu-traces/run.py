"""Prints what curves.py recorded beside the published figures, and draws it.

python run.py           the table
python run.py --draw    the picture, curves.svg
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

HERE = Path(__file__).parent
PRINTED = ("80", "90", "100", "110", "120", "130")
COLOURS = {
    "Random": "#9e9e9e", "DotProduct": "#8d6e63", "GpuClustering": "#f9a825", "GpuPacking": "#2e7d32",
    "BestFit": "#1565c0", "FGD": "#c62828",
}  # fmt: skip

Curves = dict[str, dict[str, float]]
"""Policy → load → GPU in use, both in per cent of all GPU; means over seeds."""


def recorded() -> Curves:
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read("results.csv"):
        for load, in_use in row.items():
            if load.isdigit():
                found[row["policy"]][load].append(float(in_use))
    return {policy: {load: mean(runs) for load, runs in loads.items()} for policy, loads in found.items()}


def published() -> Curves:
    return {row.pop("policy"): {load: float(text) for load, text in row.items()} for row in read("published.csv")}


def read(name: str) -> list[dict[str, str]]:
    with (HERE / name).open() as lines:
        return list(csv.DictReader(lines))


def table(ours: Curves, theirs: Curves) -> str:
    lines = [" ".join(["load         ", *(f"{load:>13}" for load in PRINTED)])]
    for policy, expected in theirs.items():
        pairs = (f"{ours[policy][load]:.2f} / {expected[load]:.2f}" for load in PRINTED)
        lines.append(" ".join([f"{policy:13}", *(f"{pair:>13}" for pair in pairs)]))
    return "\n".join(lines)


def picture(ours: Curves) -> str:
    """Loads from 80 to 130 over GPU in use from 78 to 98."""

    def x(load: float) -> float:
        return round(60 + (load - 80) * 10, 1)

    def y(in_use: float) -> float:
        return round(30 + (98 - in_use) * 17, 1)

    shapes = []
    for load in range(80, 131, 10):
        shapes.append(f'<line x1="{x(load)}" y1="{y(98)}" x2="{x(load)}" y2="{y(78)}" stroke="#ddd"/>')
        shapes.append(f'<text x="{x(load)}" y="{y(78) + 18}" text-anchor="middle">{load}</text>')
    for percent in range(78, 99, 4):
        shapes.append(f'<line x1="{x(80)}" y1="{y(percent)}" x2="{x(130)}" y2="{y(percent)}" stroke="#ddd"/>')
        shapes.append(f'<text x="{x(80) - 8}" y="{y(percent) + 4}" text-anchor="end">{percent}</text>')
    for place, (policy, colour) in enumerate(COLOURS.items()):
        points = " ".join(f"{x(int(load))},{y(in_use)}" for load, in_use in ours[policy].items() if int(load) >= 80)
        shapes.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes.append(f'<text x="{x(130) + 10}" y="{y(96) + 20 * (5 - place)}" fill="{colour}">{policy}</text>')
    shapes.append(f'<text x="{x(105)}" y="{y(78) + 38}" text-anchor="middle">requested GPU, % of all</text>')
    shapes.append(f'<text x="{x(80)}" y="18">GPU in use, % of all</text>')
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="680" height="420" font-family="sans-serif"'
    return (
        "\n".join([f'{head} font-size="13">', '<rect width="680" height="420" fill="white"/>', *shapes, "</svg>"])
        + "\n"
    )


def main() -> None:
    ours = recorded()
    if "--draw" in sys.argv:
        (HERE / "curves.svg").write_text(picture(ours))
    else:
        print(table(ours, published()))


if __name__ == "__main__":
    main()
