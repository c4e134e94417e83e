"""Spelling rules of Kubernetes names: of objects, label keys and values, qualified names, extended resources.

`is_label_key` and `is_label_value` are the API server's checks of labels; where a person wrote the name,
`qualified_name_faults` says in words what is wrong with it. The caller knows the field.
"""

import re
from collections.abc import Iterator

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_DOMAIN = re.compile(_SUBDOMAIN)
_LABEL = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:(?P<prefix>{_SUBDOMAIN})/)?{_LABEL}")
_LABEL_VALUE = re.compile(rf"(?:{_LABEL})?")
_OBJECT_NAME = re.compile(r"(?!\.{1,2}$)[!-$&-.0-~]+")


def is_object_name(text: str) -> bool:
    """Whether an object of this name can be asked for: printable ASCII without "/" and "%", not "." or "..".
    What the rules of each kind demand beyond that is the API server's business."""
    return _OBJECT_NAME.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """A name of at most 63 characters, optionally after a DNS subdomain of at most 253 and a slash."""
    match = _LABEL_KEY.fullmatch(text) if len(text) <= 317 else None
    return match is not None and len(match["prefix"] or "") <= 253


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 characters as in a name."""
    return _LABEL_VALUE.fullmatch(text) is not None


def qualified_name_faults(name: str) -> Iterator[str]:
    """What keeps `name` from being `[prefix/]name`, as label keys and extended resources are."""
    *prefixes, last = name.split("/")
    if len(prefixes) > 1:
        yield "a qualified name has at most one '/', between a DNS subdomain and the name"
        return
    for prefix in prefixes:
        if not prefix:
            yield "prefix part must be non-empty"
        elif len(prefix) > 253 or not _DOMAIN.fullmatch(prefix):
            yield "prefix part must be a lowercase DNS subdomain of at most 253 characters"
    if not last:
        yield "name part must be non-empty"
    elif len(last) > 63:
        yield "name part must be no more than 63 characters"
    elif not _NAME.fullmatch(last):
        yield (
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )


def is_extended_resource(name: str) -> bool:
    """Whether a well-spelled resource name is an extended one: prefixed, and not Kubernetes' own."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not list(qualified_name_faults(f"requests.{name}"))
