"""Subresources: binding, eviction and log of pods, and scale."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import resources
from moorage.api.errors import ApiError, ObjectError, SelectorError
from moorage.api.meta import Int64, LabelSelector, ObjectMeta, Record, StatusCause
from moorage.api.pod import Pod
from moorage.api.selectors import compile_label_selector, selector_from_labels
from moorage.api.workloads import PodDisruptionBudget
from moorage.embedded.apiserver import bodies
from moorage.embedded.apiserver.calls import ApiCall, convert, success
from moorage.embedded.apiserver.writes import DeleteRequest, checked, remove
from moorage.embedded.catalog.kinds import ScalePaths
from moorage.embedded.http import ServerAnswer, json_answer, text_answer
from moorage.framework.ports import PatchType
from moorage.store import refusals
from moorage.store.objects import Raw, Stored, timestamp
from moorage.store.patches import apply_patch

_BOUND = success(201)
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MAX_DISRUPTED = 2000
_RETRY_SECONDS = 10
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_MAX_REPLICAS = 2**31 - 1


class Target(Record):
    """The object that a pod is bound to."""

    kind: str = ""
    name: str = ""


class BindingBody(Record):
    """v1 Binding, as far as it is read."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    target: Target = Target()


_decoder = msgspec.json.Decoder(BindingBody)


def bind(call: ApiCall) -> ServerAnswer:
    """POST pods/<name>/binding: most requests of a scheduler, so it is read in one step if it can be."""
    binding = _read(call)
    _check(call, binding)
    if call.dry_run:
        call.store.get(resources.PODS, call.path.name, call.path.namespace)
        return _BOUND
    call.store.bind(
        binding.metadata.name or call.path.name,
        call.path.namespace,
        binding.target.name,
        uid=binding.metadata.uid,
        resource_version=binding.metadata.resource_version,
    )
    return _BOUND


def log(call: ApiCall) -> ServerAnswer:
    pod = call.current()
    container = call.query.get("container", "")
    if container and container not in _containers(pod.raw):
        message = f"container {container[:100]} is not valid for pod {pod.name}"
        raise refusals.bad_request(message)
    return text_answer(f"Pod {pod.namespace}/{pod.name} is simulated: no process runs, so there is no log.\n")


def connect(call: ApiCall) -> ServerAnswer:
    """Refuse exec, attach and portforward: there is no process to connect to."""
    pod = call.current()
    what = f"pods/{call.path.subresource} has nothing to connect to"
    message = f"Pod {pod.namespace}/{pod.name} is simulated: no process runs, so {what}."
    raise refusals.failure(501, "NotImplemented", message)


def _read(call: ApiCall) -> BindingBody:
    if bodies.media_type(call.content_type) in ("application/json", ""):
        try:
            return _decoder.decode(call.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the slow way words the error
    return convert(call.read_object(), BindingBody, "Binding")


def _check(call: ApiCall, binding: BindingBody) -> None:
    if binding.kind not in ("", "Binding"):
        raise refusals.bad_request(f'{binding.kind[:100]} in version "v1" cannot be handled as a Binding')
    meta = binding.metadata
    if meta.namespace and meta.namespace != call.path.namespace:
        raise refusals.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if call.path.name and meta.name and meta.name != call.path.name:
        raise refusals.bad_request("name in URL does not match name in Binding object")
    if not call.path.name and not meta.name:
        raise refusals.bad_request("metadata.name of the Binding must name the pod")
    if binding.target.kind not in ("", "Node"):
        problem = f'Unsupported value: "{binding.target.kind[:100]}": supported values: "Node", "<empty>"'
        message = f'Binding "{meta.name}" is invalid: target.kind: {problem}'
        cause = StatusCause(reason="FieldValueNotSupported", message=problem, field="target.kind")
        raise refusals.failure(422, "Invalid", message, causes=(cause,))


def _containers(raw: dict[str, object]) -> set[str]:
    spec = raw.get("spec")
    found: set[str] = set()
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in (spec.get(field) if isinstance(spec, dict) else None) or []:
            found.add(str(container.get("name")))
    return found


class Eviction(Record):
    """policy/v1 Eviction."""

    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    delete_options: DeleteRequest | None = None


def evict(call: ApiCall) -> ServerAnswer:
    eviction = convert(call.read_object(), Eviction, "Eviction")
    if eviction.metadata.name and eviction.metadata.name != call.path.name:
        raise refusals.bad_request("name in URL does not match name in Eviction object")
    options = checked(eviction.delete_options or DeleteRequest())
    dry_run = call.dry_run or bool(options.dry_run)
    current = call.current()
    pod = current.typed
    if isinstance(pod, Pod) and not _unprotected(pod):
        budgets = _budgets_of(call, pod)
        if len(budgets) > 1:
            raise refusals.failure(500, "InternalError", _SEVERAL)
        for stored, budget in budgets:
            if not _may_go_unready(pod, budget):
                _take_one(call, pod, stored, budget, dry_run)
    remove(call, current.name, current.namespace, options)
    return success(201)


def _unprotected(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed", "Pending") or bool(pod.metadata.deletion_timestamp)


def _budgets_of(call: ApiCall, pod: Pod) -> list[tuple[Stored, PodDisruptionBudget]]:
    found = call.store.list(resources.POD_DISRUPTION_BUDGETS, namespace=pod.namespace).items
    return [(s, s.typed) for s in found if isinstance(s.typed, PodDisruptionBudget) and _covers(s.typed, pod)]


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    try:
        return compile_label_selector(budget.spec.selector).matches(pod.labels)
    except SelectorError:
        return False


def _may_go_unready(pod: Pod, budget: PodDisruptionBudget) -> bool:
    if any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions):
        return False
    status = budget.status
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return status.current_healthy >= status.desired_healthy > 0


def _take_one(call: ApiCall, pod: Pod, stored: Stored, budget: PodDisruptionBudget, dry_run: bool) -> None:
    status, name = budget.status, budget.name
    if status.observed_generation < budget.metadata.generation:
        why = f"The disruption budget {name} is still being processed by the server."
        raise _refused(why, _RETRY_SECONDS)
    if status.disruptions_allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.disrupted_pods) > _MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(name, why)
    if status.disruptions_allowed == 0:
        needs = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
        raise _refused(f"The disruption budget {name} {needs}", 0)
    if not dry_run:
        disrupted = {**status.disrupted_pods, pod.name: timestamp(call.wall())}
        change = {"disruptionsAllowed": status.disruptions_allowed - 1, "disruptedPods": disrupted}
        taken = {**stored.raw, "status": {**(stored.raw.get("status") or {}), **change}}
        call.store.replace(resources.POD_DISRUPTION_BUDGETS, taken, subresource="status")


def _refused(cause: str, retry_after: int) -> ApiError:
    causes = (StatusCause(reason="DisruptionBudget", message=cause),)
    return refusals.failure(429, "TooManyRequests", _REFUSED, causes=causes, retry_after=retry_after)


def _forbidden(name: str, why: str) -> ApiError:
    return refusals.forbidden(resources.POD_DISRUPTION_BUDGETS, name, why)


class ScaleSpec(Record):
    replicas: Int64 = 0


class ScaleMeta(Record):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Scale(Record):
    """autoscaling/v1 Scale, as far as it is written."""

    kind: str = ""
    metadata: ScaleMeta = ScaleMeta()
    spec: ScaleSpec = ScaleSpec()


def get_scale(call: ApiCall) -> ServerAnswer:
    return json_answer(_scale_of(call.current(), _paths(call)))


def replace_scale(call: ApiCall) -> ServerAnswer:
    return _write(call, call.read_object())


def patch_scale(call: ApiCall) -> ServerAnswer:
    change, patch_type = bodies.read_patch(call.body, call.content_type)
    if patch_type == PatchType.STRATEGIC:
        patch_type = PatchType.MERGE  # a Scale has no lists, so they mean the same
    before = _scale_of(call.current(), _paths(call))
    after = apply_patch(call.served.resource, before, change, patch_type)
    bodies.check_object(after)
    return _write(call, after)


def _write(call: ApiCall, raw: Raw) -> ServerAnswer:
    if raw.get("kind") not in (None, "", "Scale"):
        raise refusals.bad_request(f"{raw['kind']!s:.100} cannot be handled as a Scale")
    scale, paths, name = convert(raw, Scale, "Scale"), _paths(call), call.path.name
    if scale.metadata.name not in ("", name):
        raise refusals.bad_request(
            f"the name of the object ({scale.metadata.name[:100]}) does not match the name on the URL ({name})"
        )
    replicas = scale.spec.replicas
    if not 0 <= replicas <= _MAX_REPLICAS:
        why = "must be greater than or equal to 0" if replicas < 0 else "must fit into 32 bits"
        problem = f"Invalid value: {replicas}: {why}"
        raise refusals.invalid(call.served.resource, name, "spec.replicas", problem)
    change: Any = replicas
    for field in reversed(paths.replicas):
        change = {field: change}
    preconditions = {"uid": scale.metadata.uid, "resourceVersion": scale.metadata.resource_version}
    given = {field: value for field, value in preconditions.items() if value}
    if given:
        change = {**change, "metadata": given}
    stored = call.store.patch(
        call.resource, name, change, namespace=call.path.namespace, patch_type=PatchType.MERGE, dry_run=call.dry_run
    )
    return json_answer(_scale_of(stored, paths))


def _paths(call: ApiCall) -> ScalePaths:
    if call.served.scale is None:
        raise refusals.no_subresource(call.served.resource, "scale")
    return call.served.scale


def _scale_of(stored: Stored, paths: ScalePaths) -> Raw:
    meta = stored.raw["metadata"]
    status: Raw = {"replicas": _number(stored.raw, paths.status_replicas)}
    selector = _selector(stored.raw, paths.selector)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in _META if field in meta},
        "spec": {"replicas": _number(stored.raw, paths.replicas)},
        "status": status,
    }


def _look_up(raw: Any, path: tuple[str, ...]) -> Any:
    for field in path:
        raw = raw.get(field) if isinstance(raw, dict) else None
    return raw


def _number(raw: Raw, path: tuple[str, ...]) -> int:
    value = _look_up(raw, path)
    return value if isinstance(value, int) else 0


def _selector(raw: Raw, path: tuple[str, ...] | None) -> str:
    """As text; from a text, a labelSelector or plain labels."""
    value = _look_up(raw, path) if path is not None else None
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    try:
        if "matchLabels" in value or "matchExpressions" in value:
            return str(compile_label_selector(msgspec.convert(value, LabelSelector)))
        return str(selector_from_labels(value))
    except (SelectorError, ObjectError, msgspec.ValidationError, TypeError):
        return ""
