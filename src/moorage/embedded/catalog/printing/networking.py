"""Rows of services, endpoints, ingresses and network policies."""

from __future__ import annotations

from typing import Any

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Printer,
    age,
    at_most_three,
    dig,
    labels_text,
    maps,
    name_of,
    number,
    plain,
    selector_text,
    text,
    wide,
    words,
)
from moorage.store.objects import Raw

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _service(raw: Raw, now: float) -> Cells:
    addresses = words(raw, "spec", "clusterIPs")
    return [
        name_of(raw),
        text(raw, "spec", "type", default="ClusterIP"),
        addresses[0] if addresses else text(raw, "spec", "clusterIP", default=NONE),
        _external(raw),
        ",".join(_port(port) for port in maps(raw, "spec", "ports")) or NONE,
        age(raw, now),
        labels_text(dig(raw, "spec", "selector")),
    ]


def _external(raw: Raw) -> str:
    addresses = words(raw, "spec", "externalIPs")
    match text(raw, "spec", "type", default="ClusterIP"):
        case "LoadBalancer":
            return ",".join(_balancer(raw) + addresses) or "<pending>"
        case "ExternalName":
            return text(raw, "spec", "externalName")
        case _:
            return ",".join(addresses) or NONE


def _balancer(raw: Raw) -> list[str]:
    found = maps(raw, "status", "loadBalancer", "ingress")
    return sorted({text(i, "ip") or text(i, "hostname") for i in found} - {""})


def _port(port: Raw) -> str:
    outer = f":{number(port, 'nodePort')}" if number(port, "nodePort") else ""
    return f"{number(port, 'port')}{outer}/{text(port, 'protocol', default='TCP')}"


def _endpoints(raw: Raw, now: float) -> Cells:
    found = [address for subset in maps(raw, "subsets") for address in _subset(subset)]
    return [name_of(raw), at_most_three(found, len(found), empty=NONE), age(raw, now)]


def _subset(subset: Raw) -> list[str]:
    addresses = [text(a, "ip") for a in maps(subset, "addresses")]
    ports = [number(port, "port") for port in maps(subset, "ports")]
    if not ports:
        return addresses
    return [_join(address, port) for port in ports for address in addresses]


def _join(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice(raw: Raw, now: float) -> Cells:
    ports = [_port_name(port) for port in maps(raw, "ports")]
    addresses = [a for endpoint in maps(raw, "endpoints") for a in words(endpoint, "addresses")]
    return [
        name_of(raw),
        text(raw, "addressType"),
        at_most_three(ports, len(ports), empty=UNSET),
        at_most_three(addresses, len(addresses), empty=UNSET),
        age(raw, now),
    ]


def _port_name(port: Raw) -> str:
    value: Any = dig(port, "port")
    return str(value) if value is not None else text(port, "name", default="*")


def _ingress(raw: Raw, now: float) -> Cells:
    rules = maps(raw, "spec", "rules")
    hosts = [host for host in (text(rule, "host") for rule in rules) if host]
    return [
        name_of(raw),
        text(raw, "spec", "ingressClassName", default=NONE),
        at_most_three(hosts, len(hosts), empty="*"),
        ",".join(_balancer(raw)),
        "80, 443" if maps(raw, "spec", "tls") else "80",
        age(raw, now),
    ]


def _ingress_class(raw: Raw, now: float) -> Cells:
    default = text(raw, "metadata", "annotations", _DEFAULT_CLASS) == "true"
    return [
        f"{name_of(raw)} (default)" if default else name_of(raw),
        text(raw, "spec", "controller"),
        _parameters(dig(raw, "spec", "parameters")),
        age(raw, now),
    ]


def _parameters(reference: Any) -> str:
    if not isinstance(reference, dict):
        return NONE
    kind = ".".join(filter(None, (text(reference, "kind"), text(reference, "apiGroup"))))
    return f"{kind}/{text(reference, 'name')}"


def _network_policy(raw: Raw, now: float) -> Cells:
    return [name_of(raw), selector_text(dig(raw, "spec", "podSelector")), age(raw, now)]


SERVICES = Printer(
    (NAME, *plain("Type", "Cluster-IP", "External-IP", "Port(s)"), AGE, *wide("Selector")), _service
)
ENDPOINTS = Printer((NAME, *plain("Endpoints"), AGE), _endpoints)
ENDPOINT_SLICES = Printer((NAME, *plain("AddressType", "Ports", "Endpoints"), AGE), _slice)
INGRESSES = Printer((NAME, *plain("Class", "Hosts", "Address", "Ports"), AGE), _ingress)
INGRESS_CLASSES = Printer((NAME, *plain("Controller", "Parameters"), AGE), _ingress_class)
NETWORK_POLICIES = Printer((NAME, *plain("Pod-Selector"), AGE), _network_policy)
