"""Print the problems of a configuration. This is apart from `printing`, so that help does not import configurations."""

from __future__ import annotations

from typing import NoReturn

import typer

from moorage.cli.printing import fail, line
from moorage.config import ConfigError


def complain(error: ConfigError) -> NoReturn:
    """Print all problems of a configuration with their paths, and exit with code 1."""
    if len(error.problems) == 1 and not error.problems[0].path:
        fail(f"{error.source}: {error.problems[0]}")
    line(str(error), stderr=True)
    raise typer.Exit(1) from error
