"""The rules of pods as a kind: what is filled in, and what admission adds to the rules of the spec.

First comes what every pod template gets, then what only pods get. Tokens of service accounts are not filled
in; `runtime_classes` adds what a pod gets from its runtime class.

Pods of one template have one spec: what was filled in, or found good, for the first holds for all. It is
keyed by the JSON text, so nothing has to be compared field by field. Sharing the filled-in spec among pods
also saves the memory of a copy for each; specs that are stored are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from moorage.api import pod_defaults, resources
from moorage.api.pod import DEFAULT_SCHEDULER_NAME
from moorage.embedded.admission import pod_level, pod_updates
from moorage.embedded.admission.pod_spec import check_new_pod, check_spec
from moorage.embedded.admission.pod_volumes import fill_in_references, fill_in_volume, pull_policy
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy
from moorage.store import refusals, rules
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PATIENCE: tuple[Raw, ...] = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)
_LIMIT = 2048
_MAX_CACHED = 32 * 1024  # bytes; larger specs are not cached


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
    for field in _CONTAINER_LISTS:
        if containers := spec.get(field):
            spec[field] = [_fill_in_container(container) for container in containers]
    if spec.get("volumes"):
        spec["volumes"] = [fill_in_volume(volume) for volume in spec["volumes"]]
    return spec


def fill_in_pod_spec(given: Raw | None) -> Raw:
    """The spec of a pod: also requests from limits, an account, and patience with nodes that are away."""
    spec = fill_in_template_spec(given)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    spec["tolerations"] = _with_patience(spec.get("tolerations") or ())
    spec.setdefault("enableServiceLinks", True)
    return pod_level.with_limits(pod_defaults.fill_in_resources(spec))


def _with_patience(given: Sequence[Raw]) -> list[Raw]:
    """The tolerations, with 300 s for nodes that are not ready or out of reach where the pod says nothing."""
    return [*given, *(one for one in _PATIENCE if not any(_tolerates(t, one["key"]) for t in given))]


def _tolerates(toleration: Raw, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def _fill_in_container(given: Raw) -> Raw:
    container = dict(given)
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    if container.get("ports"):
        container["ports"] = [{**port, "protocol": port.get("protocol") or "TCP"} for port in container["ports"]]
    if container.get("env"):
        container["env"] = [_fill_in_variable(variable) for variable in container["env"]]
    if container.get("lifecycle"):
        container["lifecycle"] = {hook: _fill_in_handler(does) for hook, does in container["lifecycle"].items()}
    for field in _PROBES:
        if field in container:
            container[field] = _fill_in_probe(container[field])
    return container


def _fill_in_variable(variable: Raw) -> Raw:
    if not variable.get("valueFrom"):
        return variable
    return {**variable, "valueFrom": fill_in_references(variable["valueFrom"])}


def _fill_in_probe(given: Raw) -> Raw:
    probe: Raw = _fill_in_handler(given)
    return {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3, **probe}


def _fill_in_handler(given: Any) -> Any:
    """Fill in what a probe or a hook does; a hook also has plain fields such as `stopSignal`."""
    if not isinstance(given, dict):
        return given
    handler = dict(given)
    if handler.get("httpGet"):
        handler["httpGet"] = {"path": "/", "scheme": "HTTP", **handler["httpGet"]}
    if handler.get("grpc"):
        handler["grpc"] = {"service": "", **handler["grpc"]}
    return handler


def remember_result(work: Callable[[Raw], Raw]) -> Callable[[Raw], Raw]:
    """A function of a spec that is not computed again for an equal one."""
    known: dict[bytes, Raw] = {}

    def remembered(spec: Raw) -> Raw:
        key = msgspec.json.encode(spec)
        result = known.get(key)
        if result is None:
            result = work(spec)
            if len(key) <= _MAX_CACHED:
                _forget_when_full(known)
                known[key] = result
        return result

    return remembered


def remember_good(check: Callable[[Raw, str, Problems], None]) -> Callable[[Raw, str, Problems], None]:
    """A check of a spec that is not done again for an equal one that had no problem."""
    good: dict[bytes, None] = {}

    def remembered(spec: Raw, path: str, problems: Problems) -> None:
        key = msgspec.json.encode(spec)
        if key in good:
            return
        before = len(problems.causes)
        check(spec, path, problems)
        if len(problems.causes) == before and len(key) <= _MAX_CACHED:
            _forget_when_full(good)
            good[key] = None

    return remembered


def _forget_when_full(known: dict[bytes, Raw] | dict[bytes, None]) -> None:
    if len(known) >= _LIMIT:
        known.clear()


_fill_in_spec = remember_result(fill_in_pod_spec)
_check_spec = remember_good(check_spec)


def _default(raw: Raw) -> Raw:
    return {**raw, "spec": _fill_in_spec(raw.get("spec") or {})}


def _admit(raw: Raw, cluster: StoreCluster) -> Raw:
    spec, labels = dict(raw["spec"]), raw["metadata"].get("labels") or {}
    _admit_priority(raw["metadata"]["name"], spec, cluster)
    if spec.get("affinity"):
        spec["affinity"] = rules.with_label_keys(spec["affinity"], labels)
    if spec.get("topologySpreadConstraints"):
        spec["topologySpreadConstraints"] = [
            rules.with_keys_of_term(constraint, labels) for constraint in spec["topologySpreadConstraints"]
        ]
    status = {**(raw.get("status") or {}), "qosClass": pod_level.qos_class(spec)}
    status = rules.pod_status(status, spec)
    if status.get("conditions"):
        times = {"lastProbeTime": None, "lastTransitionTime": raw["metadata"]["creationTimestamp"]}
        status["conditions"] = [{**times, **condition} for condition in status["conditions"]]
    return {**raw, "spec": spec, "status": status}


def _admit_priority(pod: str, spec: Raw, cluster: StoreCluster) -> None:
    """From the class; a number or policy of the pod's own must be what the class says."""
    given, policy = spec.pop("priority", None), spec.pop("preemptionPolicy", None)
    rules.fill_in_priority(pod, spec, cluster.every(resources.PRIORITY_CLASSES))
    why = "must not be provided in pod spec; priority admission controller computed"
    source = "from the given PriorityClass name"
    if given is not None and given != spec["priority"]:
        text = f"the integer value of priority ({given}) {why} {spec['priority']} {source}"
        raise refusals.forbidden(resources.PODS, pod, text)
    if policy is not None and policy != spec["preemptionPolicy"]:
        text = f"the string value of PreemptionPolicy ({policy}) {why} {spec['preemptionPolicy']} {source}"
        raise refusals.forbidden(resources.PODS, pod, text)


def _check(raw: Raw, problems: Problems) -> None:
    _check_spec(raw["spec"], "spec", problems)


def _check_new(raw: Raw, problems: Problems) -> None:
    check_new_pod(raw["spec"], problems)


def _check_update(new: Raw, old: Raw, problems: Problems) -> None:
    pod_updates.check_update(new["spec"], old["spec"], problems)


def _carry(new: Raw, old: Raw, cluster: StoreCluster) -> Raw:
    """Priority is decided once."""
    spec, before = dict(new["spec"]), old["spec"]
    for field in ("priority", "preemptionPolicy"):
        if field not in spec and field in before:
            spec[field] = before[field]
    return {**new, "spec": spec}


PODS = KindStrategy(
    default=_default,
    admit=_admit,
    carry=_carry,
    check=_check,
    check_new=_check_new,
    check_update=_check_update,
    first_status={"phase": "Pending"},
)
