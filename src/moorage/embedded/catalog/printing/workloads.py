"""The columns of the kinds that create pods, and of disruption budgets."""

from __future__ import annotations

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    Printer,
    containers,
    count,
    dig,
    human_duration,
    instant,
    integer,
    labels,
    maps,
    number,
    selector,
    since,
    string,
    terminating,
    text,
    wide,
)
from moorage.store.objects import Raw

# The first of these conditions that is true is the status of a job; "" stands for deletion.
_JOB_STATES = ("Complete", "Failed", "", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _ready(raw: Raw, now: float) -> str:
    return f"{number(raw, 'status', 'readyReplicas')}/{number(raw, 'spec', 'replicas')}"


def _job_state(raw: Raw, now: float) -> str:
    true = {text(c, "type") for c in maps(raw, "status", "conditions") if c.get("status") == "True"}
    holds = true | {""} if terminating(raw) else true
    return next((state or "Terminating" for state in _JOB_STATES if state in holds), "Running")


def _completions(raw: Raw, now: float) -> str:
    done, parallelism = number(raw, "status", "succeeded"), number(raw, "spec", "parallelism")
    if dig(raw, "spec", "completions") is not None:
        return f"{done}/{number(raw, 'spec', 'completions')}"
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(raw: Raw, now: float) -> str:
    start, end = (instant(dig(raw, "status", field)) for field in ("startTime", "completionTime"))
    return "" if start is None else human_duration((now if end is None else end) - start)


def _suspend(raw: Raw, now: float) -> str:
    suspend = dig(raw, "spec", "suspend")
    return "<unset>" if suspend is None else str(suspend)


def _last_schedule(raw: Raw, now: float) -> str:
    last = dig(raw, "status", "lastScheduleTime")
    return NONE if last is None else since(last, now)


def _bound(raw: Raw, field: str) -> str:
    bound = dig(raw, "spec", field)
    return "N/A" if bound is None else str(bound)


def _owner(raw: Raw, now: float) -> str:
    owners = [o for o in maps(raw, "metadata", "ownerReferences") if o.get("controller") is True]
    if not owners:
        return NONE
    group, kind = text(owners[0], "apiVersion").rpartition("/")[0], text(owners[0], "kind").lower()
    return f"{kind}.{group}/{text(owners[0], 'name')}" if group else f"{kind}/{text(owners[0], 'name')}"


_TEMPLATE = containers(".spec.template.spec")
_JOB_TEMPLATE = containers(".spec.jobTemplate.spec.template.spec")
_REPLICAS = (
    NAME,
    integer("Desired", ".spec.replicas"),
    integer("Current", ".status.replicas"),
    integer("Ready", ".status.readyReplicas"),
    AGE,
    *_TEMPLATE,
)

DEPLOYMENTS = Printer(
    (
        NAME,
        string("Ready", _ready),
        integer("Up-to-date", ".status.updatedReplicas"),
        integer("Available", ".status.availableReplicas"),
        AGE,
        *_TEMPLATE,
        wide("Selector", selector(".spec.selector", default="")),
    )
)
REPLICA_SETS = Printer((*_REPLICAS, wide("Selector", selector(".spec.selector"))))
REPLICATION_CONTROLLERS = Printer((*_REPLICAS, wide("Selector", labels(".spec.selector"))))
STATEFUL_SETS = Printer((NAME, string("Ready", _ready), AGE, *_TEMPLATE))
DAEMON_SETS = Printer(
    (
        NAME,
        integer("Desired", ".status.desiredNumberScheduled"),
        integer("Current", ".status.currentNumberScheduled"),
        integer("Ready", ".status.numberReady"),
        integer("Up-to-date", ".status.updatedNumberScheduled"),
        integer("Available", ".status.numberAvailable"),
        string("Node Selector", labels(".spec.template.spec.nodeSelector")),
        AGE,
        *_TEMPLATE,
        wide("Selector", selector(".spec.selector")),
    )
)
JOBS = Printer(
    (
        NAME,
        string("Status", _job_state),
        string("Completions", _completions),
        string("Duration", _job_duration),
        AGE,
        *_TEMPLATE,
        wide("Selector", selector(".spec.selector")),
    )
)
CRON_JOBS = Printer(
    (
        NAME,
        string("Schedule", ".spec.schedule"),
        string("Timezone", ".spec.timeZone", NONE),
        string("Suspend", _suspend),
        integer("Active", count(".status.active")),
        string("Last Schedule", _last_schedule),
        AGE,
        *_JOB_TEMPLATE,
        wide("Selector", selector(".spec.jobTemplate.spec.selector")),
    )
)
DISRUPTION_BUDGETS = Printer(
    (
        NAME,
        string("Min Available", lambda raw, now: _bound(raw, "minAvailable")),
        string("Max Unavailable", lambda raw, now: _bound(raw, "maxUnavailable")),
        integer("Allowed Disruptions", ".status.disruptionsAllowed"),
        AGE,
    )
)
CONTROLLER_REVISIONS = Printer((NAME, string("Controller", _owner), integer("Revision", ".revision"), AGE))
