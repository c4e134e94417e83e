"""The rules of a pod spec, in pods and templates, and of its volumes: names, and exactly one source each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.embedded.admission import syntax
from moorage.embedded.admission.containers import check_containers, check_init_containers
from moorage.embedded.admission.placement import check_affinity, check_gates, check_spread, check_tolerations
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import check_labels
from moorage.embedded.admission.syntax import amount, check_amount, check_requirements
from moorage.store.objects import Raw

# What a source cannot do without.
_NEEDED = {
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
    "configMap": "name",
    "hostPath": "path",
    "csi": "driver",
    "ephemeral": "volumeClaimTemplate",
}
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMES: tuple[tuple[str, syntax.Check], ...] = (
    ("serviceAccountName", syntax.subdomain),
    ("nodeName", syntax.subdomain),
    ("hostname", syntax.label),
    ("subdomain", syntax.label),
    ("priorityClassName", syntax.subdomain),
    ("runtimeClassName", syntax.subdomain),
)
_PARTS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("nodeSelector", check_labels),
    ("affinity", check_affinity),
    ("topologySpreadConstraints", check_spread),
    ("tolerations", check_tolerations),
    ("schedulingGates", check_gates),
    ("resources", check_requirements),
)
_MAX_INT32 = 2**31 - 1


def check_volumes(volumes: Sequence[Raw], path: str, problems: Problems) -> set[str]:
    """Gives the names that mounts may use."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name") or ""
        _check_sources(volume, here, problems)
        if not name:
            problems.required(f"{here}.name")
        elif sentences := syntax.label(name):
            problems.all_invalid(f"{here}.name", name, sentences)
        if name in seen:
            problems.duplicate(f"{here}.name", name)
        seen.add(name)
    return seen


def _check_sources(volume: Raw, path: str, problems: Problems) -> None:
    sources = [field for field in volume if field != "name"]
    if not sources:
        problems.required(path, "must specify a volume type")
    for extra in sources[1:]:
        problems.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    for source in sources[:1]:
        needed = _NEEDED.get(source)
        if needed and isinstance(volume[source], dict) and not volume[source].get(needed):
            problems.required(f"{path}.{source}.{needed}")
    limit = (volume.get("emptyDir") or {}).get("sizeLimit")
    if limit is not None:
        nanos = amount(limit, f"{path}.emptyDir.sizeLimit", problems)
        if nanos is not None and nanos < 0:
            problems.forbidden(
                f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity"
            )


def check_spec(spec: Raw, path: str, problems: Problems) -> None:
    """Everything that pods and templates have in common."""
    volumes = check_volumes(spec.get("volumes") or (), f"{path}.volumes", problems)
    regular = spec.get("containers") or ()
    check_containers(regular, volumes, f"{path}.containers", problems)
    if first := spec.get("initContainers"):
        check_init_containers(first, regular, volumes, f"{path}.initContainers", problems)
    for field, check in _PARTS:
        if value := spec.get(field):
            check(value, f"{path}.{field}", problems)
    for field, name_check in _NAMES:
        if (value := spec.get(field)) and (sentences := name_check(value)):
            problems.all_invalid(f"{path}.{field}", value, sentences)
    problems.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    problems.one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    if spec.get("preemptionPolicy") not in (None, "Never", "PreemptLowerPriority"):
        problems.not_supported(
            f"{path}.preemptionPolicy", spec["preemptionPolicy"], ("Never", "PreemptLowerPriority")
        )
    _check_numbers(spec, path, problems)
    for resource, value in (spec.get("overhead") or {}).items():
        check_amount(resource, value, f"{path}.overhead[{resource}]", problems)
    if spec.get("hostNetwork"):
        _check_host_network(spec, path, problems)


def check_new_pod(spec: Raw, problems: Problems) -> None:
    """What holds for a pod when it is created."""
    if spec.get("ephemeralContainers"):
        problems.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        problems.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _check_numbers(spec: Raw, path: str, problems: Problems) -> None:
    grace, deadline = spec.get("terminationGracePeriodSeconds"), spec.get("activeDeadlineSeconds")
    problems.not_negative(f"{path}.terminationGracePeriodSeconds", grace)
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        problems.invalid(
            f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_INT32}, inclusive"
        )


def _check_host_network(spec: Raw, path: str, problems: Problems) -> None:
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            for position, port in enumerate(container.get("ports") or ()):
                if port.get("hostPort") != port.get("containerPort"):
                    problems.invalid(
                        f"{path}.{field}[{index}].ports[{position}].hostPort",
                        port.get("hostPort") or 0,
                        "must match `containerPort` when `hostNetwork` is true",
                    )
