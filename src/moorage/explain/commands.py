"""What a user copies to apply a remedy: kubectl commands for objects of the cluster, and YAML for the pod.

Most fields of a running pod cannot be changed, and its owner would create the old one again. So a change of the pod is
shown as YAML for its manifest or for the template of its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api import decoding, yaml_text
from moorage.api.kubectl import kubectl, patch
from moorage.api.pod import Pod
from moorage.api.resources import NODES, Resource, Unstructured
from moorage.framework.optional import ObjectChange

_NAMED = ("containers", "initContainers")


def change_command(change: ObjectChange) -> str:
    """Return the command that makes one change, or the manifest of a new object. A new node has neither: a provider
    adds it."""
    resource, old, new = change
    if old is None:
        return "" if resource == NODES else _created(resource, new)
    target, namespace = f"{_name_of(resource)}/{old.name}", old.namespace if resource.namespaced else ""
    if new is None:
        return kubectl("delete", target, namespace=namespace)
    return patch(target, merge_patch(_plain(old), _plain(new)), namespace=namespace)


def _name_of(resource: Resource) -> str:
    """Return the name of a kind that kubectl finds even if another group has a kind of that name."""
    return resource.kind.lower() if not resource.group else f"{resource.plural}.{resource.group}"


def _created(resource: Resource, new: Any) -> str:
    made = {"apiVersion": resource.api_version, "kind": resource.kind, **_plain(new)}
    return yaml_text.dump(made).rstrip("\n")


def _plain(obj: Any) -> dict[str, Any]:
    found: dict[str, Any] = obj.raw if isinstance(obj, Unstructured) else decoding.to_builtins(obj)
    return found


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs, as RFC 7386 has it: null removes a field, and lists are replaced."""
    found: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                found[key] = inner
        elif before != value:
            found[key] = value
    return found


def pod_yaml(old: Pod, new: Pod) -> str:
    """Return the fields in which a pod differs, as YAML. Of a list that got longer only the new entries are shown, and
    null stands for a field to remove."""
    before, after = _plain(old), _plain(new)
    found = _difference({key: before.get(key) for key in _PARTS}, {key: after.get(key) for key in _PARTS})
    return yaml_text.dump(found).rstrip("\n") if found else ""


_PARTS = ("metadata", "spec")


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[key] = _difference(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            found[key] = _changed_entries(key, before, value)
        else:
            found[key] = value
    return found


def _changed_entries(key: str, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    if len(new) > len(old) and list(new[: len(old)]) == list(old):
        return list(new[len(old) :])
    if key in _NAMED and len(new) == len(old):
        pairs = zip(old, new, strict=True)
        return [{"name": b["name"], **_difference(a, b)} for a, b in pairs if a != b]
    return list(new)
