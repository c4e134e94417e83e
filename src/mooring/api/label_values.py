"""The syntax of label keys and values, as the API server checks it."""

import re

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_SUBDOMAIN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"(?:(?P<prefix>{_SUBDOMAIN})/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")


def is_label_key(text: str) -> bool:
    """A name of at most 63 characters, optionally after a DNS subdomain of at most 253 and a slash."""
    match = _KEY.fullmatch(text) if len(text) <= 317 else None
    return match is not None and len(match["prefix"] or "") <= 253


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 characters as in a name."""
    return _VALUE.fullmatch(text) is not None
