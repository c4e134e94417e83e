"""CustomResourceDefinitions of the plugins' kinds for `moorage manifests`, with one version each: namespaced with spec
and status, or cluster-scoped without either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.resources import Resource

APPROVED = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/"
AMOUNT = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]"
    r"|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
"""The schema of a quantity."""


def amounts(description: str) -> dict[str, Any]:
    """Return the schema of quantities by resource name."""
    return {"type": "object", "additionalProperties": AMOUNT, "description": description}


def definition(
    resource: Resource,
    description: str,
    *,
    short_names: Sequence[str],
    approval: int = 0,
    columns: Sequence[tuple[str, str, str]],
    spec: dict[str, Any],
    status: dict[str, Any],
    status_apart: bool = True,
) -> dict[str, Any]:
    """Return the definition of a namespaced kind. `columns` are name, JSON path and type; `spec` and `status` are the
    schemas of their properties. `approval` is the pull request of scheduler-plugins that added the kind, which groups
    of the Kubernetes project must name. Without `status_apart` the status is written with the object."""
    properties = {"spec": {"type": "object", "properties": spec}, "status": {"type": "object", "properties": status}}
    version = _version(resource, description, properties)
    version["additionalPrinterColumns"] = [
        {"name": name, "type": kind, "jsonPath": path} for name, path, kind in columns
    ]
    if status_apart:
        version["subresources"] = {"status": {}}
    return _definition(resource, short_names, f"{APPROVED}{approval}" if approval else "", version)


def cluster_definition(
    resource: Resource,
    description: str,
    *,
    short_names: Sequence[str],
    approval: str,
    required: Sequence[str],
    properties: dict[str, Any],
) -> dict[str, Any]:
    """Return the definition of a cluster-scoped kind. `required` names the mandatory `properties`; `approval` is a
    URL."""
    version = _version(resource, description, properties)
    version["schema"]["openAPIV3Schema"]["required"] = list(required)
    return _definition(resource, short_names, approval, version)


def _version(resource: Resource, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "description": description,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **properties,
        },
    }
    return {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}


def _definition(
    resource: Resource, short_names: Sequence[str], approval: str, version: dict[str, Any]
) -> dict[str, Any]:
    names = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "shortNames": list(short_names),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "annotations": {"api-approved.kubernetes.io": approval} if approval else {},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": names,
            "versions": [version],
        },
    }
