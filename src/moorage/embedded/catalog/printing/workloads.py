"""Rows of the kinds that make pods, and of what guards them."""

from __future__ import annotations

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    Cells,
    Printer,
    age,
    containers,
    dig,
    human_duration,
    instant,
    integer,
    labels_text,
    maps,
    name_of,
    number,
    plain,
    selector_terms,
    selector_text,
    since,
    terminating,
    text,
    wide,
)
from moorage.store.objects import Raw

_TEMPLATE = wide("Containers", "Images", "Selector")
_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)
# Of a job's conditions the first that holds is its status.
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _desired(raw: Raw) -> int:
    return number(raw, "spec", "replicas")


def _template(raw: Raw) -> tuple[str, str]:
    return containers(dig(raw, "spec", "template", "spec"))


def _deployment(raw: Raw, now: float) -> Cells:
    return [
        name_of(raw),
        f"{number(raw, 'status', 'readyReplicas')}/{_desired(raw)}",
        number(raw, "status", "updatedReplicas"),
        number(raw, "status", "availableReplicas"),
        age(raw, now),
        *_template(raw),
        selector_terms(dig(raw, "spec", "selector")),
    ]


def _replica_set(raw: Raw, now: float) -> Cells:
    return [*_replicas(raw, now), *_template(raw), selector_text(dig(raw, "spec", "selector"))]


def _replication_controller(raw: Raw, now: float) -> Cells:
    return [*_replicas(raw, now), *_template(raw), labels_text(dig(raw, "spec", "selector"))]


def _replicas(raw: Raw, now: float) -> Cells:
    current, ready = number(raw, "status", "replicas"), number(raw, "status", "readyReplicas")
    return [name_of(raw), _desired(raw), current, ready, age(raw, now)]


def _stateful_set(raw: Raw, now: float) -> Cells:
    ready = f"{number(raw, 'status', 'readyReplicas')}/{_desired(raw)}"
    return [name_of(raw), ready, age(raw, now), *_template(raw)]


def _daemon_set(raw: Raw, now: float) -> Cells:
    return [
        name_of(raw),
        *(number(raw, "status", count) for count in _DAEMON_COUNTS),
        labels_text(dig(raw, "spec", "template", "spec", "nodeSelector")),
        age(raw, now),
        *_template(raw),
        selector_text(dig(raw, "spec", "selector")),
    ]


def _job(raw: Raw, now: float) -> Cells:
    return [
        name_of(raw),
        _job_state(raw),
        _completions(raw),
        _job_duration(raw, now),
        age(raw, now),
        *_template(raw),
        selector_text(dig(raw, "spec", "selector")),
    ]


def _job_state(raw: Raw) -> str:
    true = {text(c, "type") for c in maps(raw, "status", "conditions") if c.get("status") == "True"}
    holds = true | {""} if terminating(raw) else true
    return next((state for condition, state in _JOB_STATES if condition in holds), "Running")


def _completions(raw: Raw) -> str:
    done, parallelism = number(raw, "status", "succeeded"), number(raw, "spec", "parallelism")
    if dig(raw, "spec", "completions") is not None:
        return f"{done}/{number(raw, 'spec', 'completions')}"
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(raw: Raw, now: float) -> str:
    start, end = (instant(dig(raw, "status", field)) for field in ("startTime", "completionTime"))
    return "" if start is None else human_duration((now if end is None else end) - start)


def _cron_job(raw: Raw, now: float) -> Cells:
    suspend, last = dig(raw, "spec", "suspend"), dig(raw, "status", "lastScheduleTime")
    job = dig(raw, "spec", "jobTemplate", "spec")
    return [
        name_of(raw),
        text(raw, "spec", "schedule"),
        text(raw, "spec", "timeZone", default=NONE),
        "<unset>" if suspend is None else str(suspend),
        len(maps(raw, "status", "active")),
        NONE if last is None else since(last, now),
        age(raw, now),
        *containers(dig(job, "template", "spec")),
        selector_text(dig(job, "selector")),
    ]


def _disruption_budget(raw: Raw, now: float) -> Cells:
    bounds = (dig(raw, "spec", field) for field in ("minAvailable", "maxUnavailable"))
    shown = ("N/A" if bound is None else str(bound) for bound in bounds)
    return [name_of(raw), *shown, number(raw, "status", "disruptionsAllowed"), age(raw, now)]


def _controller_revision(raw: Raw, now: float) -> Cells:
    owners = [o for o in maps(raw, "metadata", "ownerReferences") if o.get("controller") is True]
    controller = _qualified(owners[0]) if owners else NONE
    return [name_of(raw), controller, number(raw, "revision"), age(raw, now)]


def _qualified(owner: Raw) -> str:
    group = text(owner, "apiVersion").rpartition("/")[0]
    kind = text(owner, "kind").lower()
    return f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{text(owner, 'name')}"


DEPLOYMENTS = Printer(
    (NAME, *plain("Ready"), integer("Up-to-date"), integer("Available"), AGE, *_TEMPLATE), _deployment
)
_COUNTS = (NAME, integer("Desired"), integer("Current"), integer("Ready"))
REPLICA_SETS = Printer((*_COUNTS, AGE, *_TEMPLATE), _replica_set)
REPLICATION_CONTROLLERS = Printer((*_COUNTS, AGE, *_TEMPLATE), _replication_controller)
STATEFUL_SETS = Printer((NAME, *plain("Ready"), AGE, *wide("Containers", "Images")), _stateful_set)
DAEMON_SETS = Printer(
    (*_COUNTS, integer("Up-to-date"), integer("Available"), *plain("Node Selector"), AGE, *_TEMPLATE),
    _daemon_set,
)
JOBS = Printer((NAME, *plain("Status", "Completions", "Duration"), AGE, *_TEMPLATE), _job)
CRON_JOBS = Printer(
    (
        NAME,
        *plain("Schedule", "Timezone", "Suspend"),
        integer("Active"),
        *plain("Last Schedule"),
        AGE,
        *_TEMPLATE,
    ),
    _cron_job,
)
DISRUPTION_BUDGETS = Printer(
    (NAME, *plain("Min Available", "Max Unavailable"), integer("Allowed Disruptions"), AGE),
    _disruption_budget,
)
CONTROLLER_REVISIONS = Printer((NAME, *plain("Controller"), integer("Revision"), AGE), _controller_revision)
