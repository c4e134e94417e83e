"""POST pods/<name>/eviction: a deletion that respects the disruption budgets.

A pod that serves nobody (not started, finished, going already) is not protected. An unready one may go while
the budget's other pods are healthy, or always where the budget says so. For all others one allowed disruption
is taken from the budget, and not given to anyone else until the budget's controller has counted again.
"""

from __future__ import annotations

from mooring.api import resources
from mooring.api.errors import ApiError, SelectorError
from mooring.api.meta import ObjectMeta, Record, StatusCause
from mooring.api.pod import Pod
from mooring.api.selectors import compile_label_selector
from mooring.api.workloads import PodDisruptionBudget
from mooring.embedded import refusals
from mooring.embedded.http import Answer
from mooring.embedded.objects import Stored
from mooring.embedded.serving.calls import Call, convert, success
from mooring.embedded.serving.removing import DeleteOptions, checked, remove
from mooring.embedded.timestamps import timestamp

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MOST_DISRUPTED = 2000
_RETRY_SECONDS = 10


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
