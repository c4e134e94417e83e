"""The workload kinds but jobs, and what all workload kinds share.

Deployments, replica sets, stateful sets, daemon sets and replication controllers. Shared are selectors, pod
templates, and numbers that may be percentages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from moorage.api.errors import SelectorError
from moorage.api.meta import LabelSelector
from moorage.api.selectors import compile_label_selector
from moorage.embedded.admission import syntax
from moorage.embedded.admission.pod_spec import check_spec
from moorage.embedded.admission.pod_volumes import fill_in_claim_spec
from moorage.embedded.admission.pods import fill_in_template_spec
from moorage.embedded.admission.problems import NOT_NEGATIVE, Problems
from moorage.embedded.admission.strategy import KindStrategy, check_label_selector, check_labels, is_empty
from moorage.store.objects import Raw, with_meta

_QUARTER = "25%"
_STATEFUL_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_CHANGEABLE = frozenset(
    (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
)


def fill_in_template(given: Raw | None) -> Raw:
    template = given or {}
    return {**template, "metadata": template.get("metadata") or {}, "spec": fill_in_template_spec(template.get("spec"))}


def check_template(template: Raw, path: str, problems: Problems, claims: Collection[str] = ()) -> None:
    """Check a pod template. `claims` names the volumes that a controller adds to the pods."""
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        check_labels(labels, f"{path}.metadata.labels", problems)
    check_spec(template["spec"], f"{path}.spec", problems, claims)


def check_always(template: Raw, path: str, kind: str, problems: Problems) -> None:
    """Pods that are replaced for ever run for ever."""
    policy = template["spec"].get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        problems.not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        problems.forbidden(f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def check_selector(spec: Raw, kind: str, problems: Problems) -> None:
    """There is one, it selects something, and the template's own pods are among it."""
    selector = spec.get("selector")
    if selector is None:
        problems.required("spec.selector")
        return
    check_label_selector(selector, "spec.selector", problems)
    if is_empty(selector):
        problems.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
        return
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    try:
        compiled = compile_label_selector(msgspec.convert(selector, LabelSelector))
    except SelectorError:
        return  # said already
    if not compiled.matches(labels):
        problems.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def check_share(value: Any, path: str, problems: Problems) -> None:
    """A number of pods, or a percentage of them."""
    if isinstance(value, str):
        if not syntax.is_percent(value):
            problems.invalid(path, value, "must be an integer or percentage (e.g '5%%')")
    elif value < 0:
        problems.invalid(path, value, NOT_NEGATIVE)


def share(value: Any) -> int:
    """The number in it, with or without percent sign; -1 for a text that has none."""
    if isinstance(value, str):
        return int(value[:-1]) if syntax.is_percent(value) else -1
    return int(value)


def limit_share(value: Any, path: str, problems: Problems) -> None:
    if isinstance(value, str) and syntax.is_percent(value) and int(value[:-1]) > 100:
        problems.invalid(path, value, "must not be greater than 100%")


def _defaulting(**defaults: Any) -> Callable[[Raw], Raw]:
    """Fills in fields of the spec, and the template."""

    def default(raw: Raw) -> Raw:
        spec = {**defaults, **(raw.get("spec") or {})}
        spec["template"] = fill_in_template(spec.get("template"))
        return {**raw, "spec": spec}

    return default


def _default_deployment(raw: Raw) -> Raw:
    raw = _plain_deployment(raw)
    strategy = dict(raw["spec"].get("strategy") or {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = {"maxUnavailable": _QUARTER, "maxSurge": _QUARTER, **(strategy.get("rollingUpdate") or {})}
        strategy["rollingUpdate"] = rolling
    return {**raw, "spec": {**raw["spec"], "strategy": strategy}}


_plain_deployment = _defaulting(replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
_plain_stateful_set = _defaulting(
    replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady", serviceName=""
)
_plain_daemon_set = _defaulting(revisionHistoryLimit=10)


def _default_stateful_set(raw: Raw) -> Raw:
    raw = _plain_stateful_set(raw)
    spec = raw["spec"]
    strategy = {"type": "RollingUpdate", **(spec.get("updateStrategy") or {})}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, "maxUnavailable": 1, **(strategy.get("rollingUpdate") or {})}
    retention = {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
        **(spec.get("persistentVolumeClaimRetentionPolicy") or {}),
    }
    more: Raw = {"updateStrategy": strategy, "persistentVolumeClaimRetentionPolicy": retention}
    if spec.get("volumeClaimTemplates"):
        more["volumeClaimTemplates"] = [_fill_in_claim(claim) for claim in spec["volumeClaimTemplates"]]
    return {**raw, "spec": {**spec, **more}}


def _fill_in_claim(template: Raw) -> Raw:
    filled = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}, **template}
    return {**filled, "spec": fill_in_claim_spec(template.get("spec"))}


def _default_daemon_set(raw: Raw) -> Raw:
    raw = _plain_daemon_set(raw)
    strategy = {"type": "RollingUpdate", **(raw["spec"].get("updateStrategy") or {})}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **(strategy.get("rollingUpdate") or {})}
    return {**raw, "spec": {**raw["spec"], "updateStrategy": strategy}}


def _default_controller(raw: Raw) -> Raw:
    """A replication controller selects the pods of its template, and has their labels."""
    raw = _defaulting(replicas=1)(raw)
    labels = raw["spec"]["template"]["metadata"].get("labels")
    if labels and not raw["spec"].get("selector"):
        raw = {**raw, "spec": {**raw["spec"], "selector": labels}}
    if labels and not raw["metadata"].get("labels"):
        raw = with_meta(raw, labels=labels)
    return raw


def _default_pod_template(raw: Raw) -> Raw:
    return {**raw, "template": fill_in_template(raw.get("template"))}


def _check_common(raw: Raw, kind: str, problems: Problems) -> Raw:
    spec: Raw = raw["spec"]
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        problems.not_negative(f"spec.{field}", spec.get(field))
    claims = {(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()}
    check_template(spec["template"], "spec.template", problems, claims)
    check_always(spec["template"], "spec.template", kind, problems)
    return spec


def _check_deployment(raw: Raw, problems: Problems) -> None:
    spec = _check_common(raw, "ReplicaSet", problems)
    check_selector(spec, "deployment", problems)
    _check_strategy(spec["strategy"], problems)
    deadline = spec.get("progressDeadlineSeconds")
    problems.not_negative("spec.progressDeadlineSeconds", deadline)
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        problems.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: Raw, problems: Problems) -> None:
    path = "spec.strategy"
    if strategy["type"] == "Recreate":
        if strategy.get("rollingUpdate"):
            problems.forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"]
        for field in ("maxUnavailable", "maxSurge"):
            check_share(rolling[field], f"{path}.rollingUpdate.{field}", problems)
        if share(rolling["maxUnavailable"]) == 0 and share(rolling["maxSurge"]) == 0:
            problems.invalid(
                f"{path}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"
            )
        limit_share(rolling["maxUnavailable"], f"{path}.rollingUpdate.maxUnavailable", problems)
    else:
        problems.not_supported(f"{path}.type", strategy["type"], ("Recreate", "RollingUpdate"))


def _check_replica_set(raw: Raw, problems: Problems) -> None:
    check_selector(_check_common(raw, "ReplicaSet", problems), "replicaset", problems)


def _check_daemon_set(raw: Raw, problems: Problems) -> None:
    spec = _check_common(raw, "DaemonSet", problems)
    check_selector(spec, "daemonset", problems)
    strategy = spec["updateStrategy"]
    if strategy["type"] == "RollingUpdate":
        rolling = strategy["rollingUpdate"]
        for field in ("maxUnavailable", "maxSurge"):
            check_share(rolling[field], f"spec.updateStrategy.rollingUpdate.{field}", problems)
        if share(rolling["maxUnavailable"]) == 0 and share(rolling["maxSurge"]) == 0:
            problems.required("spec.updateStrategy.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif strategy["type"] != "OnDelete":
        problems.not_supported("spec.updateStrategy.type", strategy["type"], ("RollingUpdate", "OnDelete"))


def _check_stateful_set(raw: Raw, problems: Problems) -> None:
    spec = _check_common(raw, "StatefulSet", problems)
    check_selector(spec, "statefulset", problems)
    problems.one_of("spec.podManagementPolicy", spec.get("podManagementPolicy"), ("OrderedReady", "Parallel"))
    strategy = spec["updateStrategy"]
    if strategy["type"] == "RollingUpdate":
        problems.not_negative("spec.updateStrategy.rollingUpdate.partition", strategy["rollingUpdate"]["partition"])
    elif strategy["type"] != "OnDelete":
        problems.invalid("spec.updateStrategy", strategy["type"], "must be 'RollingUpdate' or 'OnDelete'")


def _check_controller(raw: Raw, problems: Problems) -> None:
    spec = _check_common(raw, "ReplicationController", problems)
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels") or {}
    if not selector:
        problems.required("spec.selector")
    elif not selector.items() <= labels.items():
        problems.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _selector_stays(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


def _check_stateful_set_update(new: Raw, old: Raw, problems: Problems) -> None:
    after, before = new["spec"], old["spec"]
    fixed = {**after, **before}.keys() - _STATEFUL_CHANGEABLE
    if any(after.get(field) != before.get(field) for field in fixed):
        problems.forbidden("spec", _STATEFUL_FIXED)


DEPLOYMENTS = KindStrategy(
    default=_default_deployment, check=_check_deployment, check_update=_selector_stays, first_status={}
)
REPLICA_SETS = KindStrategy(
    default=_defaulting(replicas=1),
    check=_check_replica_set,
    check_update=_selector_stays,
    first_status={"replicas": 0},
)
STATEFUL_SETS = KindStrategy(
    default=_default_stateful_set,
    check=_check_stateful_set,
    check_update=_check_stateful_set_update,
    name=syntax.label,
    first_status={"replicas": 0, "availableReplicas": 0},
)
DAEMON_SETS = KindStrategy(
    default=_default_daemon_set,
    check=_check_daemon_set,
    check_update=_selector_stays,
    first_status=dict.fromkeys(
        ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"), 0
    ),
)
REPLICATION_CONTROLLERS = KindStrategy(
    default=_default_controller, check=_check_controller, first_status={"replicas": 0}
)
CONTROLLER_REVISIONS = KindStrategy(generation=False)
POD_TEMPLATES = KindStrategy(default=_default_pod_template)
