"""The name of the project before 0.1.0, for reading files, databases and plugins of that time.

No other module spells it.
"""

from __future__ import annotations

FORMER_NAME = "mooring"
FORMER_PREFIX = b"mooring.dev/"
"""The former prefix of the project's annotations, labels and provisioners."""
PREFIX = b"moorage.dev/"


def with_current_prefix(data: bytes) -> bytes:
    """Return the text of an object with the current prefix in place of the former one."""
    return data.replace(FORMER_PREFIX, PREFIX)
