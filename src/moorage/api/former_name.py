"""The name that the project had before 0.1.0, for reading what was made under it.

No other module spells it: files, databases and plugins of that time are recognised by what is defined here.
"""

from __future__ import annotations

FORMER_NAME = "mooring"
FORMER_PREFIX = b"mooring.dev/"
"""What annotations, labels and provisioners of the project began with."""
PREFIX = b"moorage.dev/"


def with_current_prefix(data: bytes) -> bytes:
    """Return the text of an object with the present prefix in place of the former one."""
    return data.replace(FORMER_PREFIX, PREFIX)
