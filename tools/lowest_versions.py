"""Print the lowest version of every direct dependency that pyproject.toml allows, as requirements.

    python tools/lowest_versions.py [EXTRA …] > lowest.txt

Every dependency of Moorage and of the named extras is pinned to its lower bound. Their own dependencies are left to
the installer, which takes the newest versions that fit.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+(?:\[[a-z,-]+\])?)>=(?P<version>[0-9][0-9.]*)(?:,<[0-9.]+)?")


def pins(project: dict[str, Any], extras: Sequence[str]) -> Iterator[str]:
    """Yield `name==version` for every dependency; raise ValueError for one without a lower bound."""
    known = project.get("optional-dependencies", {})
    for extra in extras:
        if extra not in known:
            raise ValueError(f'unknown extra "{extra}"; pyproject.toml has {", ".join(sorted(known))}')
    listed = [*project.get("dependencies", ()), *(each for extra in extras for each in known[extra])]
    for requirement in dict.fromkeys(listed):
        found = _BOUND.fullmatch(requirement.replace(" ", ""))
        if found is None:
            raise ValueError(f'cannot pin "{requirement}": write it as name>=version or name>=version,<version')
        yield f"{found['name']}=={found['version']}"


def main(extras: Sequence[str]) -> int:
    try:
        print("\n".join(pins(tomllib.loads(PYPROJECT.read_text())["project"], extras)))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
