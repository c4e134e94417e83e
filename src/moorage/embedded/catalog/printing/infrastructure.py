"""The columns of services, endpoints, ingresses, network policies, volumes, CSI and resource claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    PrinterColumn,
    Read,
    boolean,
    count,
    dig,
    integer,
    labels,
    listed,
    maps,
    number,
    selector,
    string,
    terminating,
    text,
    wide,
    words,
)
from moorage.store.objects import Raw

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def default_class(*annotations: str) -> PrinterColumn:
    """Return the name column of a class kind: an annotation marks the default class."""

    def name(raw: Raw, now: float) -> str:
        is_default = any(text(raw, "metadata", "annotations", key) == "true" for key in annotations)
        return f"{text(raw, 'metadata', 'name')} (default)" if is_default else text(raw, "metadata", "name")

    return PrinterColumn("Name", name, format=NAME.format, description=NAME.description)


def _phase(raw: Raw, now: float) -> str:
    return "Terminating" if terminating(raw) else text(raw, "status", "phase")


def _storage_class(raw: Raw, now: float) -> str:
    """The old annotation takes precedence over the field."""
    return text(raw, "metadata", "annotations", _CLASS_ANNOTATION) or text(raw, "spec", "storageClassName")


def _capacity(raw: Raw, part: str) -> str:
    value: Any = dig(raw, part, "capacity", "storage")
    return "0" if value is None else str(value)


def _access_modes(raw: Raw, part: str) -> str:
    modes = words(raw, part, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _claim_of(raw: Raw, now: float) -> str:
    claim = dig(raw, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else ""


def _is_bound(raw: Raw) -> bool:
    return bool(text(raw, "spec", "volumeName"))


def _token_requests(raw: Raw, now: float) -> str:
    if dig(raw, "spec", "tokenRequests") is None:
        return UNSET
    return ",".join(text(request, "audience") for request in maps(raw, "spec", "tokenRequests"))


def _claim_state(raw: Raw, now: float) -> str:
    states = ["deleted"] if terminating(raw) else []
    if dig(raw, "status", "allocation") is not None:
        states.append("allocated")
        states += ["reserved"] if maps(raw, "status", "reservedFor") else []
    elif not states:
        states.append("pending")
    return ",".join(states)


_ATTRIBUTES_CLASS = string("VolumeAttributesClass", ".spec.volumeAttributesClassName", UNSET)
_VOLUME_MODE = wide("VolumeMode", ".spec.volumeMode", UNSET)

VOLUMES = Printer(
    (
        NAME,
        string("Capacity", lambda raw, now: _capacity(raw, "spec")),
        string("Access Modes", lambda raw, now: _access_modes(raw, "spec")),
        string("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
        string("Status", _phase),
        string("Claim", _claim_of),
        string("StorageClass", _storage_class),
        _ATTRIBUTES_CLASS,
        string("Reason", ".status.reason"),
        AGE,
        _VOLUME_MODE,
    )
)
CLAIMS = Printer(
    (
        NAME,
        string("Status", _phase),
        string("Volume", ".spec.volumeName"),
        string("Capacity", lambda raw, now: _capacity(raw, "status") if _is_bound(raw) else ""),
        string("Access Modes", lambda raw, now: _access_modes(raw, "status") if _is_bound(raw) else ""),
        string("StorageClass", _storage_class),
        _ATTRIBUTES_CLASS,
        AGE,
        _VOLUME_MODE,
    )
)
STORAGE_CLASSES = Printer(
    (
        default_class(*_DEFAULT_ANNOTATIONS),
        string("Provisioner", ".provisioner"),
        string("ReclaimPolicy", ".reclaimPolicy", "Delete"),
        string("VolumeBindingMode", ".volumeBindingMode", "Immediate"),
        boolean("AllowVolumeExpansion", ".allowVolumeExpansion"),
        AGE,
    )
)
CSI_NODES = Printer((NAME, integer("Drivers", count(".spec.drivers")), AGE))
CSI_DRIVERS = Printer(
    (
        NAME,
        boolean("AttachRequired", ".spec.attachRequired", default=True),
        boolean("PodInfoOnMount", ".spec.podInfoOnMount"),
        boolean("StorageCapacity", ".spec.storageCapacity"),
        string("TokenRequests", _token_requests),
        boolean("RequiresRepublish", ".spec.requiresRepublish"),
        string("Modes", listed(".spec.volumeLifecycleModes", default=NONE)),
        AGE,
    )
)
VOLUME_ATTACHMENTS = Printer(
    (
        NAME,
        string("Attacher", ".spec.attacher"),
        string("PV", ".spec.source.persistentVolumeName"),
        string("Node", ".spec.nodeName"),
        boolean("Attached", ".status.attached"),
        AGE,
    )
)
RESOURCE_CLAIMS = Printer((NAME, string("State", _claim_state), AGE))
RESOURCE_SLICES = Printer(
    (NAME, string("Node", ".spec.nodeName"), string("Driver", ".spec.driver"), string("Pool", ".spec.pool.name"), AGE)
)


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
RUNTIME_CLASSES = Printer((NAME, string("Handler", ".handler"), AGE))
NETWORK_POLICIES = Printer((NAME, string("Pod-Selector", selector(".spec.podSelector")), AGE))
