"""Validate a pod spec, in pods and templates: volumes, affinity, topology spread, tolerations and gates."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from moorage.embedded.admission import syntax
from moorage.embedded.admission.containers import check_containers, check_init_containers
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import check_label_selector, check_labels, check_node_selector, check_node_term
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
_MAX_INT32 = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def check_affinity(affinity: Raw, path: str, problems: Problems) -> None:
    nodes = affinity.get("nodeAffinity") or {}
    if _REQUIRED in nodes:
        check_node_selector(nodes[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}", problems)
    for index, preferred in enumerate(nodes.get(_PREFERRED) or ()):
        here = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        _check_weight(preferred.get("weight") or 0, here, problems)
        check_node_term(preferred.get("preference") or {}, f"{here}.preference", problems, values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            _check_pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]", problems)
        for index, preferred in enumerate(pods.get(_PREFERRED) or ()):
            here = f"{path}.{kind}.{_PREFERRED}[{index}]"
            _check_weight(preferred.get("weight") or 0, here, problems)
            _check_pod_term(preferred.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", problems)


def check_spread(constraints: Sequence[Raw], path: str, problems: Problems) -> None:
    """The constraints of a pod; each pair of key and action comes once."""
    pairs = [(c.get("topologyKey") or "", c.get("whenUnsatisfiable") or "") for c in constraints]
    for index, constraint in enumerate(constraints):
        here, (key, action) = f"{path}[{index}]", pairs[index]
        problems.positive(f"{here}.maxSkew", constraint.get("maxSkew") or 0)
        if not key:
            problems.required(f"{here}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            problems.not_supported(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if pairs[index] in pairs[index + 1 :]:
            problems.duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        if constraint.get("minDomains") is not None:
            problems.positive(f"{here}.minDomains", constraint["minDomains"])
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                problems.invalid(f"{here}.minDomains", constraint["minDomains"], detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(field) not in (None, "Honor", "Ignore"):
                problems.not_supported(f"{here}.{field}", constraint[field], ("Honor", "Ignore"))
        _check_label_keys(constraint, here, problems)
        check_label_selector(constraint.get("labelSelector"), f"{here}.labelSelector", problems)


def check_tolerations(tolerations: Sequence[Raw], path: str, problems: Problems) -> None:
    for index, toleration in enumerate(tolerations):
        _check_toleration(toleration, f"{path}[{index}]", problems)


def check_taints(taints: Sequence[Raw], path: str, problems: Problems) -> None:
    """The taints of a node."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here, key, effect = f"{path}[{index}]", taint.get("key") or "", taint.get("effect") or ""
        problems.all_invalid(f"{here}.key", key, syntax.qualified(key))
        if sentences := syntax.label_value(taint.get("value") or ""):
            problems.invalid(f"{here}.value", taint["value"], ";".join(sentences))
        problems.one_of(f"{here}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            problems.duplicate(here, taint, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def check_gates(gates: Sequence[Raw], path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        problems.all_invalid(f"{path}[{index}]", name, syntax.qualified(name))
        if name in seen:
            problems.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def _check_weight(weight: int, path: str, problems: Problems) -> None:
    if not 1 <= weight <= 100:
        problems.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _check_pod_term(term: Raw, path: str, problems: Problems) -> None:
    check_label_selector(term.get("labelSelector"), f"{path}.labelSelector", problems)
    check_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", problems)
    for name in term.get("namespaces") or ():
        problems.all_invalid(f"{path}.namespace", name, syntax.label(name))
    _check_label_keys(term, path, problems)
    key = term.get("topologyKey") or ""
    if not key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    problems.all_invalid(f"{path}.topologyKey", key, syntax.qualified(key))


def _check_label_keys(term: Raw, path: str, problems: Problems) -> None:
    """matchLabelKeys and mismatchLabelKeys: they extend the selector, so there must be one."""
    matching, others = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", others)):
        if keys and term.get("labelSelector") is None:
            problems.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            problems.all_invalid(f"{path}.{field}[{index}]", key, syntax.qualified(key))
    for index, key in enumerate(matching):
        if key in others:
            problems.invalid(
                f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys"
            )


def _check_toleration(toleration: Raw, path: str, problems: Problems) -> None:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        problems.all_invalid(f"{path}.key", key, syntax.qualified(key))
    elif operator != "Exists":
        problems.invalid(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        problems.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    _check_operator(operator, value, path, problems)
    if effect and effect not in _EFFECTS:
        problems.not_supported(f"{path}.effect", effect, _EFFECTS)


def _check_operator(operator: str, value: str, path: str, problems: Problems) -> None:
    if operator in ("", "Equal"):
        if sentences := syntax.label_value(value):
            problems.invalid(f"{path}.operator", value, ";".join(sentences))
    elif operator == "Exists":
        if value:
            problems.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        if not _INTEGER.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
            problems.invalid(
                f"{path}.value", value, "must be a valid decimal integer in canonical form, within 64 bits"
            )
    else:
        problems.not_supported(f"{path}.operator", operator, ("Equal", "Exists"))


_PARTS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("nodeSelector", check_labels),
    ("affinity", check_affinity),
    ("topologySpreadConstraints", check_spread),
    ("tolerations", check_tolerations),
    ("schedulingGates", check_gates),
    ("resources", check_requirements),
)


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
            problems.forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")


def check_spec(spec: Raw, path: str, problems: Problems, claims: Collection[str] = ()) -> None:
    """Check what pods and templates have in common. Mounts may also use the volumes that are named by `claims`."""
    volumes = check_volumes(spec.get("volumes") or (), f"{path}.volumes", problems).union(claims)
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
        problems.not_supported(f"{path}.preemptionPolicy", spec["preemptionPolicy"], ("Never", "PreemptLowerPriority"))
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
        problems.invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_INT32}, inclusive")


def _check_host_network(spec: Raw, path: str, problems: Problems) -> None:
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            for position, port in enumerate(container.get("ports") or ()):
                if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                    problems.invalid(
                        f"{path}.{field}[{index}].ports[{position}].hostPort",
                        port.get("hostPort") or 0,
                        "must match `containerPort` when `hostNetwork` is true",
                    )
