"""Services: addresses and node ports are given out here; nothing listens on them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any

from moorage.api import resources
from moorage.embedded.admission import syntax
from moorage.embedded.admission.containers import PROTOCOLS
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy, check_labels
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

ADDRESSES = ipaddress.ip_network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def _default(raw: Raw) -> Raw:
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **(raw.get("spec") or {})}
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP" and not spec.get("sessionAffinityConfig"):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in _WITH_NODE_PORTS:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("ports"):
        spec["ports"] = [_fill_in_port(port) for port in spec["ports"]]
    return {**raw, "spec": spec}


def _fill_in_port(given: Raw) -> Raw:
    port = {"protocol": "TCP", **given}
    if not port.get("targetPort") and port.get("port"):
        port["targetPort"] = port["port"]
    return port


def _admit(raw: Raw, cluster: StoreCluster) -> Raw:
    return {**raw, "spec": _with_node_ports(_with_address(raw["spec"], cluster), cluster)}


def _carry(new: Raw, old: Raw, cluster: StoreCluster) -> Raw:
    """An address stays while the type needs one."""
    spec, before = dict(new["spec"]), old["spec"]
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if field in before:
                spec[field] = before[field]
    if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        spec.setdefault("healthCheckNodePort", before.get("healthCheckNodePort"))
    given = {(p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or ()}
    if spec["type"] in _WITH_NODE_PORTS and spec.get("ports"):
        spec["ports"] = [_keep_node_port(port, given) for port in spec["ports"]]
    return {**new, "spec": _with_node_ports(_with_address(spec, cluster), cluster)}


def _keep_node_port(port: Raw, given: dict[Any, int | None]) -> Raw:
    known = given.get((port.get("protocol"), port.get("port")))
    return {**port, "nodePort": known} if known and not port.get("nodePort") else port


def _with_address(spec: Raw, cluster: StoreCluster) -> Raw:
    if spec["type"] == "ExternalName":
        return spec
    if not spec.get("clusterIP"):
        taken = {(service.get("spec") or {}).get("clusterIP") for service in cluster.every(resources.SERVICES)}
        spec = {**spec, "clusterIP": next(str(a) for a in ADDRESSES.hosts() if str(a) not in taken)}
    families: Raw = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    if spec["clusterIP"] == "None" and not spec.get("selector"):
        families = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
    return {"clusterIPs": [spec["clusterIP"]], **families, **spec}


def _with_node_ports(spec: Raw, cluster: StoreCluster) -> Raw:
    """Also a port for health checks, for a load balancer that sends only to nodes with endpoints."""
    wanted = spec["type"] in _WITH_NODE_PORTS and spec.get("allocateLoadBalancerNodePorts") is not False
    wanted = wanted and not all(port.get("nodePort") for port in spec.get("ports") or ())
    checked = spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
    checked = checked and not spec.get("healthCheckNodePort")
    if not wanted and not checked:
        return spec
    taken = set(_node_ports([spec, *(service.get("spec") or {} for service in cluster.every(resources.SERVICES))]))
    free = iter(number for number in NODE_PORTS if number not in taken)
    if wanted:
        ports = [port if port.get("nodePort") else {**port, "nodePort": next(free)} for port in spec["ports"]]
        spec = {**spec, "ports": ports}
    return {**spec, "healthCheckNodePort": next(free)} if checked else spec


def _node_ports(specs: Sequence[Raw]) -> Iterator[int | None]:
    for spec in specs:
        yield spec.get("healthCheckNodePort")
        for port in spec.get("ports") or ():
            yield port.get("nodePort")


def _check(raw: Raw, problems: Problems) -> None:
    spec = raw["spec"]
    if spec["type"] not in _TYPES:
        problems.not_supported("spec.type", spec["type"], _TYPES)
    if spec["sessionAffinity"] not in ("ClientIP", "None"):
        problems.not_supported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    if spec.get("selector"):
        check_labels(spec["selector"], "spec.selector", problems)
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
        problems.required("spec.ports")
    _check_ports(spec.get("ports") or (), problems)
    if spec["type"] == "ExternalName":
        name = spec.get("externalName") or ""
        if not name:
            problems.required("spec.externalName")
        else:
            problems.all_invalid("spec.externalName", name, syntax.subdomain(name.removesuffix(".")))
    elif not headless:
        _check_address(spec.get("clusterIP") or "", problems)
    if headless and spec["type"] in _WITH_NODE_PORTS:
        problems.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")


def _check_address(address: str, problems: Problems) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        problems.invalid("spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def _check_ports(ports: Sequence[Raw], problems: Problems) -> None:
    seen: set[str] = set()
    pairs: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        here, name = f"spec.ports[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            problems.required(f"{here}.name")
        elif name:
            problems.all_invalid(f"{here}.name", name, syntax.label(name))
            if name in seen:
                problems.duplicate(f"{here}.name", name)
            seen.add(name)
        number = port.get("port") or 0
        problems.all_invalid(f"{here}.port", number, syntax.port_number(number))
        problems.one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        target: int | str = port.get("targetPort") or number
        sentences = syntax.port_name(target) if isinstance(target, str) else syntax.port_number(target)
        problems.all_invalid(f"{here}.targetPort", target, sentences)
        if (port.get("protocol") or "", number) in pairs:
            problems.duplicate(here, {"port": number, "protocol": port.get("protocol")})
        pairs.add((port.get("protocol") or "", number))
        if port.get("nodePort") and port["nodePort"] not in NODE_PORTS:
            problems.invalid(
                f"{here}.nodePort",
                port["nodePort"],
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}",
            )


def _check_update(new: Raw, old: Raw, problems: Problems) -> None:
    before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if before and after and before != after and old["spec"]["type"] != "ExternalName":
        problems.invalid("spec.clusterIPs[0]", [after], "may not change once set")


SERVICES = KindStrategy(
    default=_default,
    admit=_admit,
    carry=_carry,
    check=_check,
    check_update=_check_update,
    name=syntax.label_1035,
    first_status={"loadBalancer": {}},
    generation=False,
)
