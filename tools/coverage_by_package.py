"""Print the line coverage of every package of Moorage, and fail if the total is below the floor.

python tools/coverage_by_package.py COVERAGE.json     # from `coverage json`
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath

FLOOR = 85.0
"""Percentage of all lines that the fast tests must execute."""


def main(report: Path) -> int:
    """Print a row for every package and one for the total. Returns the exit code."""
    covered: dict[str, int] = defaultdict(int)
    lines: dict[str, int] = defaultdict(int)
    for name, file in json.loads(report.read_text())["files"].items():
        inside = PurePath(name).parts
        if inside[:2] != ("src", "moorage"):
            continue  # tests run copies of the package too, such as that of the container image
        package = inside[2] if len(inside) > 3 else "moorage"
        for key in (package, "all"):
            covered[key] += file["summary"]["covered_lines"]
            lines[key] += file["summary"]["num_statements"]
    for package in [*sorted(lines.keys() - {"all"}), "all"]:
        print(f"{package:12} {100 * covered[package] / lines[package]:5.1f} % of {lines[package]:6} lines")
    whole = 100 * covered["all"] / lines["all"]
    if whole < FLOOR:
        print(f"Coverage is {whole:.1f} %; the floor is {FLOOR:.0f} %. Add tests for the new code.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
