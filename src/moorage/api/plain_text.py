"""Text that plugins and other programs have written, made fit for the API: clean, and within a limit in bytes."""

from __future__ import annotations

import re

_BROKEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters other than tab and line feed, and halves of surrogate pairs, which UTF-8 cannot encode."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_ELLIPSIS = " ..."


def fit(text: str, max_bytes: int) -> str:
    """Return the text without characters that cannot be sent, and with at most `max_bytes` of UTF-8.

    A longer text is cut between two characters and ends in an ellipsis.
    """
    if 4 * len(text) <= max_bytes and text.isprintable():
        return text
    # No character takes less than a byte, so the rest is never needed.
    encoded = without_broken(text[: max_bytes + 1]).encode()
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max_bytes - len(_ELLIPSIS)].decode("utf-8", "ignore") + _ELLIPSIS


def without_broken(text: str) -> str:
    """Return the text with a replacement character for each one that cannot be sent."""
    return _BROKEN.sub(_REPLACEMENT, text)
