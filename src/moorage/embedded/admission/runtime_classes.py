"""RuntimeClasses: the rules of the kind, and what pods that name a class get from it.

Follows plugin/pkg/admission/runtimeclass/admission.go.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.errors import ApiError, QuantityError
from moorage.api.quantity import parse
from moorage.api.resources import Resource
from moorage.embedded.admission import syntax
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_MISMATCH = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNEXPECTED = "Pod Overhead set without corresponding RuntimeClass defined Overhead"


def with_runtime_class(resource: Resource, raw: Raw, cluster: StoreCluster) -> Raw:
    """Return a new pod with the overhead, node selector and tolerations of its RuntimeClass.

    Raises Forbidden if the class does not exist or contradicts the pod.
    """
    if resource != resources.PODS:
        return raw
    spec, name = raw["spec"], raw["metadata"]["name"]
    class_name = spec.get("runtimeClassName")
    found: Raw = {}
    if class_name:
        found = cluster.find(resources.RUNTIME_CLASSES, class_name) or {}
        if not found:
            raise _rejected(name, f'RuntimeClass "{class_name}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed") or {}
    if spec.get("overhead") and not _equal(spec["overhead"], overhead):
        raise _rejected(name, _MISMATCH if overhead else _UNEXPECTED)
    if not found:
        return raw
    added: Raw = {"overhead": overhead} if overhead else {}
    scheduling = found.get("scheduling") or {}
    if scheduling.get("nodeSelector"):
        added["nodeSelector"] = _merged(name, spec.get("nodeSelector") or {}, scheduling["nodeSelector"])
    if scheduling.get("tolerations"):
        given = spec.get("tolerations") or []
        added["tolerations"] = [*given, *(each for each in scheduling["tolerations"] if each not in given)]
    return {**raw, "spec": {**spec, **added}} if added else raw


def _merged(pod: str, selector: Raw, more: Raw) -> Raw:
    for key, value in more.items():
        if selector.get(key, value) != value:
            why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise _rejected(pod, f"{why}pod.spec.nodeSelector[{key}] = {selector[key]}")
    return {**selector, **more}


def _equal(one: Raw, other: Raw) -> bool:
    try:
        return _amounts(one) == _amounts(other)
    except QuantityError:
        return True  # validation reports it


def _amounts(given: Raw) -> dict[str, int]:
    return {name: parse(amount) for name, amount in given.items()}


def _rejected(pod: str, why: str) -> ApiError:
    return refusals.forbidden(resources.PODS, pod, f"pod rejected: {why}")


def _check(raw: Raw, problems: Problems) -> None:
    problems.all_invalid("handler", raw.get("handler", ""), syntax.label(raw.get("handler", "")))
    for name, amount in ((raw.get("overhead") or {}).get("podFixed") or {}).items():
        syntax.check_amount(name, amount, f"overhead.podFixed[{name}]", problems)


def _check_update(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("handler", new.get("handler"), old.get("handler"))


RUNTIME_CLASSES = KindStrategy(check=_check, check_update=_check_update, generation=False)
