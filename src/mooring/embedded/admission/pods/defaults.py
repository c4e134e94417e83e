"""What a pod gets that does not say otherwise: first what every pod template gets, then what only pods get.

Quotas, security policies, tokens of service accounts and overheads of runtime classes are not filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mooring.api.pod import DEFAULT_SCHEDULER_NAME
from mooring.store.objects import Raw

_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FILE_MODE = 420  # 0644
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_PATIENCE: tuple[Raw, ...] = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


def fill_in_template_spec(given: Raw | None) -> Raw:
    """The spec of a pod or of a pod template."""
    spec = dict(given or {})
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    host_network = spec.get("hostNetwork", False)
    for field in _CONTAINER_LISTS:
        if containers := spec.get(field):
            spec[field] = [_fill_in_container(container, host_network) for container in containers]
    if spec.get("volumes"):
        spec["volumes"] = [_fill_in_volume(volume) for volume in spec["volumes"]]
    return spec


def fill_in_pod_spec(given: Raw | None) -> Raw:
    """The spec of a pod: also requests from limits, an account, and patience with nodes that are away."""
    spec = fill_in_template_spec(given)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    spec["tolerations"] = _with_patience(spec.get("tolerations") or ())
    spec.setdefault("enableServiceLinks", True)
    for field in ("containers", "initContainers"):
        if containers := spec.get(field):
            spec[field] = [_with_requests(container) for container in containers]
    return spec


def _with_patience(given: Sequence[Raw]) -> list[Raw]:
    """The tolerations, with 300 s for nodes that are not ready or out of reach where the pod says nothing."""
    return [*given, *(one for one in _PATIENCE if not any(_tolerates(t, one["key"]) for t in given))]


def _tolerates(toleration: Raw, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def _fill_in_container(given: Raw, host_network: bool) -> Raw:
    container = dict(given)
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    if container.get("ports"):
        container["ports"] = [_fill_in_port(port, host_network) for port in container["ports"]]
    for field in _PROBES:
        if field in container:
            container[field] = _fill_in_probe(container[field])
    return container


@lru_cache(maxsize=4096)
def _pull_policy(image: str) -> str:
    """Always for `latest` and for images without a tag."""
    name, digest, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"


def _fill_in_port(given: Raw, host_network: bool) -> Raw:
    port = {**given, "protocol": given.get("protocol") or "TCP"}
    if host_network and not port.get("hostPort") and port.get("containerPort"):
        port["hostPort"] = port["containerPort"]
    return port


def _fill_in_probe(given: Raw) -> Raw:
    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3, **given}
    if probe.get("httpGet"):
        probe["httpGet"] = {"path": "/", "scheme": "HTTP", **probe["httpGet"]}
    return probe


def _fill_in_volume(volume: Raw) -> Raw:
    if not volume.keys() - {"name"}:
        return {**volume, "emptyDir": {}}
    for source in _WITH_MODE:
        if source in volume and "defaultMode" not in volume[source]:
            return {**volume, source: {**volume[source], "defaultMode": _FILE_MODE}}
    if "hostPath" in volume and "type" not in volume["hostPath"]:
        return {**volume, "hostPath": {**volume["hostPath"], "type": ""}}
    return volume


def _with_requests(container: Raw) -> Raw:
    """Requests default to limits."""
    amounts = container["resources"]
    limits, requests = amounts.get("limits"), amounts.get("requests") or {}
    if not limits or limits.keys() <= requests.keys():
        return container
    return {**container, "resources": {**amounts, "requests": {**limits, **requests}}}
