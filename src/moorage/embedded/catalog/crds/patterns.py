"""The regular expressions of schemas, in RE2.

The API server compiles them with Go's regexp package, which has the syntax and the guarantees of RE2: the time to match
is linear in the length of the text. Python's re would backtrack, and a pattern such as `^(a+)+$` could stop the server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_QUIET = re2.Options()
_QUIET.log_errors = False


class PatternError(ValueError):
    """A text is not a regular expression of RE2; the message says why."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Return the compiled pattern, or raise a PatternError."""
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        why = error.args[0] if error.args else str(error)
        raise PatternError(why.decode(errors="replace") if isinstance(why, bytes) else str(why)) from None


def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found anywhere in the text."""
    return compile_pattern(pattern).search(text) is not None
