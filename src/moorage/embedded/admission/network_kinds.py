"""The strategies of endpoints, ingresses and network policies: only defaults; nothing here carries traffic."""

from __future__ import annotations

from moorage.embedded.admission.strategy import KindStrategy
from moorage.store.objects import Raw


def _default_endpoints(raw: Raw) -> Raw:
    if not raw.get("subsets"):
        return raw
    return {**raw, "subsets": [_with_protocols(subset) for subset in raw["subsets"]]}


def _with_protocols(holder: Raw) -> Raw:
    if not holder.get("ports"):
        return holder
    return {**holder, "ports": [{"protocol": "TCP", **port} for port in holder["ports"]]}


def _default_slice(raw: Raw) -> Raw:
    """kubectl relies on the names of ports (pkg/apis/discovery/v1/defaults.go)."""
    ports = [{"name": "", "protocol": "TCP", **port} for port in raw.get("ports") or ()]
    endpoints = [{"conditions": {}, **endpoint} for endpoint in raw.get("endpoints") or ()]
    return {**raw, "endpoints": endpoints or None, "ports": ports or None}


def _default_ingress_class(raw: Raw) -> Raw:
    spec = raw.get("spec") or {}
    if not spec.get("parameters"):
        return {**raw, "spec": spec}
    return {**raw, "spec": {**spec, "parameters": {"scope": "Cluster", **spec["parameters"]}}}


def _default_policy(raw: Raw) -> Raw:
    """A policy without types applies to ingress, and to egress if it has rules for it."""
    spec = {"podSelector": {}, **(raw.get("spec") or {})}
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        if not spec.get(direction, True):
            del spec[direction]
        elif spec.get(direction):
            spec[direction] = [_with_protocols(rule) for rule in spec[direction]]
    return {**raw, "spec": spec}


ENDPOINTS = KindStrategy(default=_default_endpoints, generation=False)
ENDPOINT_SLICES = KindStrategy(default=_default_slice)
INGRESSES = KindStrategy(first_status={"loadBalancer": {}})
INGRESS_CLASSES = KindStrategy(default=_default_ingress_class)
NETWORK_POLICIES = KindStrategy(default=_default_policy)
