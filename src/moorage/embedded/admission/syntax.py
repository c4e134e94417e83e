"""The syntax of values in the API server's words: names, labels, ports, resources and amounts.

Each check of a name gives the sentences of what is wrong; none means fine. Names repeat, so answers are
remembered. Amounts are reported to `Problems`: quantities, the names of resources, requests beside limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from moorage.api import quantity
from moorage.api.errors import QuantityError
from moorage.api.quantity import NANO, Quantity
from moorage.embedded.admission.problems import NOT_NEGATIVE, Problems
from moorage.store.objects import Raw

Check: TypeAlias = Callable[[str], Sequence[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WORD = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"

_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_GRAMMAR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_HUGE = "hugepages-"
_OF_CONTAINERS = frozenset(("cpu", "memory", "ephemeral-storage"))
_STANDARD = _OF_CONTAINERS | {"storage", "pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
_WHOLE = frozenset(("pods",))


def _too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def _pattern(words: str, pattern: str, *examples: str) -> str:
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{words} (e.g. {shown}, regex used for validation is '{pattern}')"


def _syntax(pattern: str, limit: int, sentence: str, unit: str = "characters") -> Check:
    compiled = re.compile(pattern)

    @lru_cache(maxsize=16384)
    def check(text: str) -> Sequence[str]:
        problems = [_too_long(limit, unit)] if len(text.encode()) > limit else []
        if len(text) <= 10 * limit and not compiled.fullmatch(text):
            problems.append(sentence)
        return tuple(problems)

    return check


subdomain = _syntax(_SUBDOMAIN, 253, _pattern(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
"""Names of most objects."""
label = _syntax(_LABEL, 63, _pattern(_LABEL_WORDS, _LABEL, "my-name", "123-abc"))
"""Namespaces, containers, volumes."""
label_1035 = _syntax(_LABEL_1035, 63, _pattern(_LABEL_1035_WORDS, _LABEL_1035, "my-name", "abc-123"))
"""Services, before they could begin with a digit."""
config_key = _syntax(
    _CONFIG_KEY,
    253,
    _pattern(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        _CONFIG_KEY,
        "key.name",
        "KEY_NAME",
        "key-name",
    ),
)
"""Keys of config maps and secrets."""
label_value = _syntax(f"({_WORD})?", 63, _pattern(_VALUE_WORDS, f"({_WORD})?", "MyValue", "my_value", "12345"), "bytes")
_name_part = _syntax(_WORD, 63, _pattern(_NAME_WORDS, _WORD, "MyName", "my.name", "123-abc"), "bytes")


def is_percent(text: str) -> bool:
    return re.fullmatch(_PERCENT, text, re.ASCII) is not None


@lru_cache(maxsize=16384)
def qualified(text: str) -> Sequence[str]:
    """A name with an optional DNS subdomain and slash before it: label keys, resources, gates, finalizers."""
    parts = text.split("/")
    if len(parts) > 2:
        words = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and "
        words += "end with an alphanumeric character"
        sentence = _pattern(words, _WORD, "MyName", "my.name", "123-abc")
        return (f"{sentence} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    problems += [sentence for sentence in _name_part(name) if not sentence.startswith("must be")]
    return tuple(problems)


@lru_cache(maxsize=1024)
def port_name(text: str) -> Sequence[str]:
    """IANA service names."""
    problems: list[str] = []
    if len(text) > 15:
        problems.append(_too_long(15))
    if not re.fullmatch("[-a-z0-9]+", text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def port_number(number: int) -> Sequence[str]:
    return () if 1 <= number <= 65535 else ("must be between 1 and 65535, inclusive",)


def path_segment(text: str) -> Sequence[str]:
    """Names that have only to fit into a path: RBAC kinds, events."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{letter}'" for letter in ("/", "%") if letter in text)


def amount(value: Quantity, path: str, problems: Problems) -> int | None:
    """The quantity in nano-units; None, and a problem, for a text that is none."""
    try:
        return quantity.parse(value)
    except QuantityError:
        problems.invalid(path, value, _GRAMMAR)
        return None


@lru_cache(maxsize=4096)
def _is_good(resource: str, value: Quantity) -> bool:
    """Whether the most common checks all pass: most pods ask for the same few amounts."""
    try:
        nanos = quantity.parse(value)
    except QuantityError:
        return False
    return resource in _OF_CONTAINERS and nanos >= 0


def check_amount(resource: str, value: Quantity, path: str, problems: Problems) -> None:
    if _is_good(resource, value):
        return
    nanos = amount(value, path, problems)
    if nanos is None:
        return
    if nanos < 0:
        problems.invalid(path, value, NOT_NEGATIVE)
    if (resource in _WHOLE or is_extended(resource)) and nanos % NANO:
        problems.invalid(path, value, "must be an integer")


@lru_cache(maxsize=4096)
def is_extended(resource: str) -> bool:
    """Devices and the like: outside the kubernetes.io names, counted in whole units, never overcommitted."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def check_requirements(requirements: Raw, path: str, problems: Problems) -> None:
    """Requests and limits of a container."""
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    for resource, value in limits.items():
        _check_entry(resource, value, f"{path}.limits[{resource}]", problems)
    for resource, value in requests.items():
        _check_entry(resource, value, f"{path}.requests[{resource}]", problems)
        if limits or is_extended(resource) or resource.startswith(_HUGE):
            _check_beside_limit(resource, value, limits, path, problems)
    named = limits.keys() | requests.keys()
    if any(resource.startswith(_HUGE) for resource in named) and not named & {"cpu", "memory"}:
        problems.forbidden(path, "HugePages require cpu or memory")


def _check_entry(resource: str, value: Quantity, path: str, problems: Problems) -> None:
    if _is_good(resource, value):
        return
    _check_container_resource(resource, path, problems)
    check_amount(resource, value, path, problems)


def _check_container_resource(resource: str, path: str, problems: Problems) -> None:
    if sentences := qualified(resource):
        problems.all_invalid(path, resource, sentences)
    elif "/" not in resource:
        if resource not in _STANDARD and not resource.startswith(_HUGE):
            problems.invalid(path, resource, "must be a standard resource type or fully qualified")
        if resource not in _OF_CONTAINERS and not resource.startswith(_HUGE):
            problems.invalid(path, resource, "must be a standard resource for containers")
    elif "kubernetes.io/" not in resource and resource.startswith("requests."):
        problems.invalid(path, resource, "doesn't follow extended resource name standard")


def _check_beside_limit(
    resource: str, value: Quantity, limits: dict[str, Quantity], path: str, problems: Problems
) -> None:
    fixed = is_extended(resource) or resource.startswith(_HUGE)
    if resource not in limits:
        if fixed:
            problems.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    try:
        wanted, limit = quantity.parse(value), quantity.parse(limits[resource])
    except QuantityError:
        return  # said already
    if fixed and wanted != limit:
        problems.invalid(f"{path}.requests", value, f"must be equal to {resource} limit of {limits[resource]}")
    elif wanted > limit:
        problems.invalid(
            f"{path}.requests", value, f"must be less than or equal to {resource} limit of {limits[resource]}"
        )
