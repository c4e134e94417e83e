"""The subresources of pods that are calls: binding (with the older bindings resource), log, and eviction.

An eviction is a deletion that respects the disruption budgets. A pod that serves no client (not started,
finished, going already) is not protected. An unready one may go while the budget's other pods are healthy, or
always where the budget says so. For all others one allowed disruption is taken from the budget, and not given
to another pod until the budget's controller has counted again.
"""

from __future__ import annotations

import msgspec

from moorage.api import resources
from moorage.api.errors import ApiError, SelectorError
from moorage.api.meta import ObjectMeta, Record, StatusCause
from moorage.api.pod import Pod
from moorage.api.selectors import compile_label_selector
from moorage.api.workloads import PodDisruptionBudget
from moorage.embedded.apiserver import bodies
from moorage.embedded.apiserver.calls import Call, convert, success
from moorage.embedded.apiserver.deletion import DeleteOptions, checked, remove
from moorage.embedded.http import Answer, text_answer
from moorage.store import refusals
from moorage.store.objects import Stored, timestamp

_BOUND = success(201)
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MOST_DISRUPTED = 2000
_RETRY_SECONDS = 10


class Target(Record):
    """The object that a pod is bound to."""

    kind: str = ""
    name: str = ""


class Binding(Record):
    """v1 Binding, as far as it is read."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    target: Target = Target()


_decoder = msgspec.json.Decoder(Binding)


def bind(call: Call) -> Answer:
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


def log(call: Call) -> Answer:
    pod = call.current()
    container = call.query.get("container", "")
    if container and container not in _containers(pod.raw):
        message = f"container {container[:100]} is not valid for pod {pod.name}"
        raise refusals.bad_request(message)
    return text_answer(f"Pod {pod.namespace}/{pod.name} is simulated: no process runs, so there is no log.\n")


def _read(call: Call) -> Binding:
    if bodies.media_type(call.content_type) in ("application/json", ""):
        try:
            return _decoder.decode(call.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the slow way words the error
    return convert(call.read_object(), Binding, "Binding")


def _check(call: Call, binding: Binding) -> None:
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
    delete_options: DeleteOptions | None = None


def evict(call: Call) -> Answer:
    eviction = convert(call.read_object(), Eviction, "Eviction")
    if eviction.metadata.name and eviction.metadata.name != call.path.name:
        raise refusals.bad_request("name in URL does not match name in Eviction object")
    options = checked(eviction.delete_options or DeleteOptions())
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


def _budgets_of(call: Call, pod: Pod) -> list[tuple[Stored, PodDisruptionBudget]]:
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


def _take_one(call: Call, pod: Pod, stored: Stored, budget: PodDisruptionBudget, dry_run: bool) -> None:
    status, name = budget.status, budget.name
    if status.observed_generation < budget.metadata.generation:
        why = f"The disruption budget {name} is still being processed by the server."
        raise _refused(why, _RETRY_SECONDS)
    if status.disruptions_allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.disrupted_pods) > _MOST_DISRUPTED:
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
