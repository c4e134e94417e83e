"""The columns of services, endpoints, ingresses and network policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    Read,
    dig,
    labels,
    maps,
    number,
    selector,
    string,
    text,
    wide,
    words,
)
from moorage.embedded.catalog.printing.storage import default_class
from moorage.store.objects import Raw


def _up_to_three(items: Callable[[Raw], list[str]], empty: str) -> Read:
    """Show the first three items, and the number of the others."""

    def read(raw: Raw, now: float) -> str:
        found = items(raw)
        joined = ",".join(found[:3])
        return f"{joined} + {len(found) - 3} more..." if len(found) > 3 else joined or empty

    return read


def _cluster_ip(raw: Raw, now: float) -> str:
    addresses = words(raw, "spec", "clusterIPs")
    return addresses[0] if addresses else text(raw, "spec", "clusterIP", default=NONE)


def _external(raw: Raw, now: float) -> str:
    addresses = words(raw, "spec", "externalIPs")
    match text(raw, "spec", "type", default="ClusterIP"):
        case "LoadBalancer":
            return ",".join(_balancers(raw) + addresses) or "<pending>"
        case "ExternalName":
            return text(raw, "spec", "externalName")
        case _:
            return ",".join(addresses) or NONE


def _balancers(raw: Raw) -> list[str]:
    found = maps(raw, "status", "loadBalancer", "ingress")
    return sorted({text(i, "ip") or text(i, "hostname") for i in found} - {""})


def _service_ports(raw: Raw, now: float) -> str:
    return ",".join(_service_port(port) for port in maps(raw, "spec", "ports")) or NONE


def _service_port(port: Raw) -> str:
    outer = f":{number(port, 'nodePort')}" if number(port, "nodePort") else ""
    return f"{number(port, 'port')}{outer}/{text(port, 'protocol', default='TCP')}"


def _endpoints(raw: Raw) -> list[str]:
    return [address for subset in maps(raw, "subsets") for address in _subset(subset)]


def _subset(subset: Raw) -> list[str]:
    addresses = [text(a, "ip") for a in maps(subset, "addresses")]
    ports = [number(port, "port") for port in maps(subset, "ports")]
    if not ports:
        return addresses
    hosts = [f"[{address}]" if ":" in address else address for address in addresses]
    return [f"{host}:{port}" for port in ports for host in hosts]


def _slice_ports(raw: Raw) -> list[str]:
    return [_slice_port(port) for port in maps(raw, "ports")]


def _slice_port(port: Raw) -> str:
    value: Any = dig(port, "port")
    return str(value) if value is not None else text(port, "name", default="*")


def _slice_addresses(raw: Raw) -> list[str]:
    return [address for endpoint in maps(raw, "endpoints") for address in words(endpoint, "addresses")]


def _hosts(raw: Raw) -> list[str]:
    return [host for rule in maps(raw, "spec", "rules") if (host := text(rule, "host"))]


def _parameters(raw: Raw, now: float) -> str:
    reference = dig(raw, "spec", "parameters")
    if not isinstance(reference, dict):
        return NONE
    kind = ".".join(filter(None, (text(reference, "kind"), text(reference, "apiGroup"))))
    return f"{kind}/{text(reference, 'name')}"


SERVICES = Printer(
    (
        NAME,
        string("Type", ".spec.type", "ClusterIP"),
        string("Cluster-IP", _cluster_ip),
        string("External-IP", _external),
        string("Port(s)", _service_ports),
        AGE,
        wide("Selector", labels(".spec.selector")),
    )
)
ENDPOINTS = Printer((NAME, string("Endpoints", _up_to_three(_endpoints, NONE)), AGE))
ENDPOINT_SLICES = Printer(
    (
        NAME,
        string("AddressType", ".addressType"),
        string("Ports", _up_to_three(_slice_ports, UNSET)),
        string("Endpoints", _up_to_three(_slice_addresses, UNSET)),
        AGE,
    )
)
INGRESSES = Printer(
    (
        NAME,
        string("Class", ".spec.ingressClassName", NONE),
        string("Hosts", _up_to_three(_hosts, "*")),
        string("Address", lambda raw, now: ",".join(_balancers(raw))),
        string("Ports", lambda raw, now: "80, 443" if maps(raw, "spec", "tls") else "80"),
        AGE,
    )
)
INGRESS_CLASSES = Printer(
    (
        default_class("ingressclass.kubernetes.io/is-default-class"),
        string("Controller", ".spec.controller"),
        string("Parameters", _parameters),
        AGE,
    )
)
NETWORK_POLICIES = Printer((NAME, string("Pod-Selector", selector(".spec.podSelector")), AGE))
