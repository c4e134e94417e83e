"""Where the commands for people look for `module:Class` beside the installed packages."""

from __future__ import annotations

import os
import sys


def current_folder() -> tuple[str, ...]:
    """The current folder; nothing when it is gone, or when `python -I` asks to keep it out."""
    if sys.flags.isolated:
        return ()
    try:
        return (os.getcwd(),)
    except OSError:
        return ()
