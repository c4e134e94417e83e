"""The CustomResourceDefinition of ElasticQuota, as `mooring manifests` prints it. It is that of
scheduler-plugins in other words, so either serves."""

from __future__ import annotations

from typing import Any

from mooring.contrib.capacity_scheduling.quotas import ELASTICQUOTAS

_AMOUNT = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]"
    r"|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}


def _amounts(description: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": _AMOUNT, "description": description}


def _column(name: str, path: str, kind: str = "string") -> dict[str, str]:
    return {"name": name, "type": kind, "jsonPath": path}


DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"{ELASTICQUOTAS.plural}.{ELASTICQUOTAS.group}",
        # Groups of the Kubernetes project want to know who agreed to a definition; this is that of the kind.
        "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
        },
    },
    "spec": {
        "group": ELASTICQUOTAS.group,
        "scope": "Namespaced",
        "names": {
            "kind": ELASTICQUOTAS.kind,
            "listKind": f"{ELASTICQUOTAS.kind}List",
            "plural": ELASTICQUOTAS.plural,
            "singular": "elasticquota",
            "shortNames": ["eq", "eqs"],
        },
        "versions": [
            {
                "name": ELASTICQUOTAS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    _column("Used", ".status.used"),
                    _column("Max", ".spec.max"),
                    _column("Age", ".metadata.creationTimestamp", "date"),
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "What the pods of a namespace may use, and what they are sure to get.",
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "min": _amounts("Guaranteed; others may borrow what is not used of it."),
                                    "max": _amounts("Not to be exceeded; unlimited what is not named."),
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"used": _amounts("What the pods with a node request.")},
                            },
                        },
                    }
                },
            }
        ],
    },
}
