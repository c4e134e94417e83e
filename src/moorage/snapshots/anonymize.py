"""Names in a snapshot replaced by hashes, so that it can be given away: `moorage snapshot --hash-names`.

A name becomes one hash wherever it stands: as the name or namespace of an object, as a reference to one, as
the value of a label or in a selector. So whatever compares names gives the same answers. Messages, which may
hold any name, and what identifies machines are left out. What names no object stays: keys of labels, zones,
images, containers, schedulers, drivers, disks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from moorage.api.resources import CSI_DRIVERS, PODS, Resource, Unstructured
from moorage.plugins.volumes import BETA_CLASS, SELECTED_NODE

Objects = Mapping[Resource, list[dict[str, Any]]]
"""As JSON has them."""

KEPT = {
    "default", "kube-system", "kube-public", "kube-node-lease", "system-cluster-critical",
    "system-node-critical",
}  # fmt: skip
"""Every cluster has these."""
NAMING_LABELS = {
    "kubernetes.io/hostname", "kubernetes.io/metadata.name", "statefulset.kubernetes.io/pod-name", "job-name",
    "batch.kubernetes.io/job-name", "batch.kubernetes.io/cronjob-name", "app", "k8s-app",
    "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/part-of", SELECTED_NODE,
    BETA_CLASS,
}  # fmt: skip
"""Labels and annotations whose values are names, also of objects that are not in the snapshot."""
REFERENCES = {
    "nodeName", "nominatedNodeName", "claimName", "volumeName", "persistentVolumeName", "storageClassName",
    "volumeAttributesClassName", "serviceAccountName", "priorityClassName", "runtimeClassName",
    "podGroupName", "resourceClaimName", "resourceClaimTemplateName", "secretName", "secretNamespace",
    "nodeID", "namespaces",
}  # fmt: skip
"""Fields that name objects, one or several."""
IDENTIFIED = {"metadata", "ownerReferences", "claimRef", "dataSource", "dataSourceRef"}
"""Fields in which an object is identified,"""
IDENTITY = {"name", "namespace", "generateName", "uid"}
"""and how."""
LABELS = {"labels", "matchLabels", "nodeSelector", "selector", "annotations"}
DROPPED = {
    "addresses", "machineID", "systemUUID", "bootID", "providerID", "hostIP", "podIP", "podIPs", "message",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copying:
    """A copy of an object, in which names are what the functions make of them."""

    name: Callable[[str], str]
    label: Callable[[str, str], str]
    """Of key and value."""
    text: Callable[[str], str] = str
    """Any other text."""
    dropped: frozenset[str] = frozenset()

    def of(self, value: Any, inside: str = "") -> Any:
        """`inside` is the field in which the value is, or the list that it is in."""
        if isinstance(value, list | tuple):
            return [self.of(each, inside) for each in value]
        if isinstance(value, dict):
            return {
                field: self._field(value, field, inside)
                for field in value
                if field not in self.dropped or inside == "ports"  # their hostIP is none of the pod's
            }
        return self.text(value) if isinstance(value, str) else value

    def _field(self, owner: dict[str, Any], field: str, inside: str) -> Any:
        value = owner[field]
        if field in IDENTITY:
            return self.name(value) if inside in IDENTIFIED and isinstance(value, str) else value
        if field in REFERENCES:
            return self._each(self.name, value)
        if field in LABELS and _is_map_of_texts(value):
            return {key: self.label(key, text) for key, text in value.items()}
        if field == "values" and inside == "matchFields":
            return self._each(self.name, value)
        if field == "values" and isinstance(owner.get("key"), str):
            return self._each(lambda text: self.label(owner["key"], text), value)
        return self.of(value, field)

    def _each(self, call: Callable[[str], str], value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [call(each) if isinstance(each, str) else each for each in value]
        return call(value) if isinstance(value, str) else value


def hash_names(objects: Objects, salt: str) -> tuple[Objects, dict[str, str]]:
    """The objects with other names, and what each name has become. Without the salt it cannot be found out by
    trying names."""
    names = _hashes(objects, salt)

    def renamed(name: str) -> str:
        return names.get(name, name)

    known = Copying(renamed, lambda key, text: renamed(text), dropped=frozenset(DROPPED))
    custom = Copying(renamed, lambda key, text: renamed(text), text=renamed)
    made = {
        resource: items if resource == CSI_DRIVERS else (custom if resource.type is Unstructured else known).of(items)
        for resource, items in objects.items()
    }
    return made, names


def _hashes(objects: Objects, salt: str) -> dict[str, str]:
    found: set[str] = set()

    def collect(name: str) -> str:
        found.add(name)
        return name

    collecting = Copying(
        collect, lambda key, text: collect(text) if key in NAMING_LABELS else text, dropped=frozenset(DROPPED)
    )
    for resource, items in objects.items():
        if resource != CSI_DRIVERS:
            collecting.of(items)
    key = blake2b(salt.encode()).digest()
    # A number says nothing, and selectors compare numbers.
    names = {
        name: f"x{blake2b(name.encode(), key=key, digest_size=6).hexdigest()}"
        for name in found - KEPT
        if name and not name.isdecimal()
    }
    return names | _ephemeral_claims(objects, names)


def _ephemeral_claims(objects: Objects, names: Mapping[str, str]) -> dict[str, str]:
    """Claims that are known by the name of their pod and of its volume."""
    found = {}
    for pod in objects.get(PODS, ()):
        name = pod["metadata"]["name"]
        for volume in pod.get("spec", {}).get("volumes", ()):
            if volume.get("ephemeral") is not None:
                suffix = f"-{volume.get('name', '')}"
                found[name + suffix] = names.get(name, name) + suffix
    return found


def _is_map_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
