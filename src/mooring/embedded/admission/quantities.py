"""The rules of resources and their amounts: names, quantities, requests beside limits."""

from __future__ import annotations

from functools import lru_cache

from mooring.api import quantity
from mooring.api.errors import QuantityError
from mooring.api.quantity import NANO, Quantity
from mooring.embedded.admission import names
from mooring.embedded.admission.problems import NOT_NEGATIVE, Problems
from mooring.store.objects import Raw

_GRAMMAR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_HUGE = "hugepages-"
_OF_CONTAINERS = frozenset(("cpu", "memory", "ephemeral-storage"))
_STANDARD = _OF_CONTAINERS | {
    "storage",
    "pods",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
}
_WHOLE = frozenset(("pods",))


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
    if sentences := names.qualified(resource):
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
        problems.invalid(
            f"{path}.requests", value, f"must be equal to {resource} limit of {limits[resource]}"
        )
    elif wanted > limit:
        problems.invalid(
            f"{path}.requests", value, f"must be less than or equal to {resource} limit of {limits[resource]}"
        )
