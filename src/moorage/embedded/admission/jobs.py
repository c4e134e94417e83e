"""Jobs and cron jobs."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from moorage.embedded.admission import syntax
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy
from moorage.embedded.admission.workloads import check_selector, check_template, fill_in_template
from moorage.store.objects import Raw, with_meta
from moorage.store.rules import StoreCluster

_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_NOT_NEGATIVE = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_FIXED = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_WHILE_SUSPENDED = ("affinity", "nodeSelector", "tolerations", "schedulingGates")
_ZONE_PART = re.compile(r"(?!-|\.{1,2}\Z)[A-Za-z.\-_0-9+]{1,14}")
_EXPLICIT_ZONE = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
_MAX_INT32 = 2**31 - 1


def _default_job(raw: Raw) -> Raw:
    return {**raw, "spec": fill_in_job_spec(raw.get("spec"))}


def fill_in_job_spec(given: Raw | None) -> Raw:
    spec = dict(given or {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    spec["template"] = fill_in_template(spec.get("template"))
    if (spec.get("podFailurePolicy") or {}).get("rules"):
        rules = [_fill_in_rule(rule) for rule in spec["podFailurePolicy"]["rules"]]
        spec["podFailurePolicy"] = {**spec["podFailurePolicy"], "rules": rules}
    return spec


def _fill_in_rule(rule: Raw) -> Raw:
    if not rule.get("onPodConditions"):
        return rule
    return {**rule, "onPodConditions": [{"status": "True", **pattern} for pattern in rule["onPodConditions"]]}


def _admit_job(raw: Raw, cluster: StoreCluster) -> Raw:
    """Its labels are those of its template, and its pods are distinguished from all others by its UID."""
    spec, meta = raw["spec"], raw["metadata"]
    template = spec["template"]
    if spec["manualSelector"]:
        return _with_labels(raw, template["metadata"].get("labels"))
    own = dict.fromkeys(_NAME_LABELS, meta["name"]) | dict.fromkeys(_UID_LABELS, meta["uid"])
    labels = {**own, **(template["metadata"].get("labels") or {})}
    selector = spec.get("selector") or {}
    matched = {_UID_LABELS[1]: meta["uid"], **(selector.get("matchLabels") or {})}
    return {
        **_with_labels(raw, labels),
        "spec": {
            **spec,
            "selector": {**selector, "matchLabels": matched},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _with_labels(raw: Raw, labels: Raw | None) -> Raw:
    return raw if raw["metadata"].get("labels") or not labels else with_meta(raw, labels=labels)


def _check_job(raw: Raw, problems: Problems) -> None:
    check_job_spec(raw["spec"], "spec", problems)
    check_selector(raw["spec"], "job", problems)


def check_job_spec(spec: Raw, path: str, problems: Problems) -> None:
    for field in _NOT_NEGATIVE:
        problems.not_negative(f"{path}.{field}", spec.get(field))
    mode = spec.get("completionMode") or "NonIndexed"
    if mode not in ("NonIndexed", "Indexed"):
        problems.not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        problems.required(f"{path}.completions", "when completion mode is Indexed")
    if mode == "NonIndexed":
        for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(field) is not None:
                problems.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
    policy = spec["template"]["spec"]["restartPolicy"]
    check_template(spec["template"], f"{path}.template", problems)
    if policy == "Always":
        problems.required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif spec.get("podFailurePolicy") and policy == "OnFailure":
        problems.invalid(
            f"{path}.template.spec.restartPolicy",
            policy,
            'only "Never" is supported when podFailurePolicy is specified',
        )


def _check_job_update(new: Raw, old: Raw, problems: Problems) -> None:
    after, before = new["spec"], old["spec"]
    for field in _FIXED:
        problems.unchanged(f"spec.{field}", after.get(field), before.get(field))
    if after.get("completions") != before.get("completions") and not _is_elastic(after, before):
        problems.unchanged("spec.completions", after.get("completions"), before.get("completions"))
    template = after["template"]
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        template = _without_placement(template, before["template"])
    problems.unchanged("spec.template", template, before["template"])


def _is_elastic(after: Raw, before: Raw) -> bool:
    """An indexed job may grow and shrink while it wants as many pods at once as completions."""
    return before.get("completionMode") == "Indexed" and after.get("completions") == after.get("parallelism")


def _without_placement(template: Raw, before: Raw) -> Raw:
    """Where the pods of a job that has not begun will run may still change."""
    spec = {field: value for field, value in template["spec"].items() if field not in _WHILE_SUSPENDED}
    spec |= {field: before["spec"][field] for field in _WHILE_SUSPENDED if field in before["spec"]}
    return {**template, "spec": spec, "metadata": before["metadata"]}


def _default_cron_job(raw: Raw) -> Raw:
    spec = {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        **(raw.get("spec") or {}),
    }
    template = spec.get("jobTemplate") or {}
    job = dict(template.get("spec") or {})
    job["template"] = fill_in_template(job.get("template"))  # the rest is filled in when a Job is created
    spec["jobTemplate"] = {"metadata": {}, **template, "spec": job}
    return {**raw, "spec": spec}


def _check_cron_job(raw: Raw, problems: Problems) -> None:
    spec = raw["spec"]
    if not spec.get("schedule"):
        problems.required("spec.schedule")
    elif "TZ" in spec["schedule"]:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        problems.invalid("spec.schedule", spec["schedule"], why)
    elif not spec["schedule"].startswith("@") and len(spec["schedule"].split()) != 5:
        found = len(spec["schedule"].split())
        problems.invalid("spec.schedule", spec["schedule"], f"expected exactly 5 fields, found {found}")
    problems.one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        problems.not_negative(f"spec.{field}", spec.get(field))
    check_job_spec(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", problems)
    name = raw["metadata"].get("name") or ""
    if len(name) > 52:
        problems.invalid("metadata.name", name, "must be no more than 52 characters")


def _check_new_cron_job(raw: Raw, problems: Problems) -> None:
    if (zone := raw["spec"].get("timeZone")) is not None:
        for problem in time_zone(zone):
            problems.invalid("spec.timeZone", zone, problem)


def _check_cron_job_update(raw: Raw, old: Raw, problems: Problems) -> None:
    if raw["spec"].get("timeZone") != old["spec"].get("timeZone"):
        _check_new_cron_job(raw, problems)


def time_zone(name: str) -> list[str]:
    """Return what is wrong with a time zone. Follows validateTimeZone of pkg/apis/batch/validation/validation.go."""
    unknown = f"unknown time zone {name}"
    if not name:
        return ["timeZone must be nil or non-empty string"]
    if not all(_ZONE_PART.fullmatch(part) for part in name.split("/")):
        return [unknown]
    problems = [_EXPLICIT_ZONE] if name.lower() == "local" else []
    if name not in ("UTC", "Local") and not _is_known_zone(name):
        problems.append(unknown)
    return problems


def _is_known_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # not found, a folder, or a file of another kind
        return False
    return True


JOBS = KindStrategy(
    default=_default_job,
    admit=_admit_job,
    check=_check_job,
    check_update=_check_job_update,
    name=syntax.subdomain,
    first_status={},
)
CRON_JOBS = KindStrategy(
    default=_default_cron_job,
    check=_check_cron_job,
    check_new=_check_new_cron_job,
    check_update=_check_cron_job_update,
    first_status={},
)
