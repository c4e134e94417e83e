"""Deployments, sets, controllers and jobs: defaults, selectors, what may change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.api.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from moorage.store.objects import Raw
from tests.embedded.admission.kit import case, container, named, problems, strict_store, update_problems, workload

MISMATCH = "`selector` does not match template `labels`"


def job(**spec: Any) -> Raw:
    template = {"spec": {"containers": [container()], "restartPolicy": "Never"}}
    return named("job", spec={"template": template, **spec})


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        case(
            "deployments",
            DEPLOYMENTS,
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            },
        ),
        case("replica sets", REPLICA_SETS, {"replicas": 1}),
        case(
            "stateful sets",
            STATEFUL_SETS,
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "serviceName": "",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            },
        ),
        case(
            "daemon sets",
            DAEMON_SETS,
            {
                "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            },
        ),
    ],
)
def test_defaults(resource, expected):
    stored = strict_store().create(resource, workload()).raw
    spec = stored["spec"]
    assert {field: value for field, value in spec.items() if field not in ("selector", "template")} == expected
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert "tolerations" not in spec["template"]["spec"]
    assert set(stored["status"].values()) <= {0}


def test_a_replication_controller_selects_its_own():
    raw = workload()
    del raw["spec"]["selector"]
    stored = strict_store().create(REPLICATION_CONTROLLERS, raw).raw
    assert (stored["spec"]["selector"], stored["metadata"]["labels"]) == ({"app": "web"}, {"app": "web"})


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        (DEPLOYMENTS, "deployment"),
        (REPLICA_SETS, "replicaset"),
        (STATEFUL_SETS, "statefulset"),
        (DAEMON_SETS, "daemonset"),
    ],
    ids=lambda value: str(value),
)
class TestSelectors:
    def test_none(self, resource, kind):
        raw = workload()
        del raw["spec"]["selector"]
        assert problems(resource, raw) == ["spec.selector: Required value"]

    def test_empty(self, resource, kind):
        expected = f"spec.selector: Invalid value: {{}}: empty selector is invalid for {kind}"
        assert problems(resource, workload(selector={})) == [expected]

    def test_of_others(self, resource, kind):
        expected = f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {MISMATCH}'
        assert problems(resource, workload(selector={"matchLabels": {"app": "db"}})) == [expected]

    def test_for_ever(self, resource, kind):
        store = strict_store()
        raw = store.create(resource, workload()).raw
        labels = {"app": "web", "b": "c"}
        template = {**raw["spec"]["template"], "metadata": {"labels": labels}}
        spec = {**raw["spec"], "selector": {"matchLabels": labels}, "template": template}
        (problem,) = update_problems(store, resource, {**raw, "spec": spec})
        assert "field is immutable" in problem or "updates to statefulset spec" in problem


@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        case(
            "fewer than none",
            DEPLOYMENTS,
            {"replicas": -1},
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        case(
            "no progress at all",
            DEPLOYMENTS,
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
        ),
        case(
            "more than all",
            DEPLOYMENTS,
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        case(
            "both strategies",
            DEPLOYMENTS,
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
        case(
            "no strategy",
            DEPLOYMENTS,
            {"strategy": {"type": "Slow"}},
            ['spec.strategy.type: Unsupported value: "Slow": supported values: "Recreate", "RollingUpdate"'],
        ),
        case(
            "a deadline that is over at once",
            DEPLOYMENTS,
            {"progressDeadlineSeconds": 5, "minReadySeconds": 10},
            ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
        ),
        case(
            "pods that end",
            REPLICA_SETS,
            {
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [container()], "restartPolicy": "Never"},
                }
            },
            ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
        ),
        case(
            "a bad template",
            DAEMON_SETS,
            {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}},
            ["spec.template.spec.containers[0].image: Required value"],
        ),
    ],
)
def test_refused(resource, spec, expected):
    assert problems(resource, workload(**spec)) == expected


def test_a_stateful_set_mounts_its_claim_templates():
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    first = container("first", volumeMounts=[{"name": "data", "mountPath": "/data"}])
    main = container(volumeMounts=[{"name": "data", "mountPath": "/data"}, {"name": "other", "mountPath": "/other"}])
    spec = {"initContainers": [first], "containers": [main]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    given = workload(template=template, volumeClaimTemplates=[claim])
    assert problems(STATEFUL_SETS, given) == [
        'spec.template.spec.containers[0].volumeMounts[1].name: Not found: "other"'
    ]
    spec["volumes"] = [{"name": "other"}]
    assert problems(STATEFUL_SETS, given) == []


def test_of_a_stateful_set_little_changes():
    store = strict_store()
    raw = store.create(STATEFUL_SETS, workload(serviceName="a")).raw
    assert update_problems(store, STATEFUL_SETS, {**raw, "spec": {**raw["spec"], "replicas": 3}}) == []
    raw = store.get(STATEFUL_SETS, "web", "default").raw
    assert update_problems(store, STATEFUL_SETS, {**raw, "spec": {**raw["spec"], "serviceName": "b"}}) == [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
        "'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' "
        "are forbidden"
    ]


class TestJobs:
    def test_defaults(self):
        raw = strict_store().create(JOBS, job()).raw
        uid, spec = raw["metadata"]["uid"], raw["spec"]
        assert {field: value for field, value in spec.items() if field not in ("selector", "template")} == {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": "TerminatingOrFailed",
        }
        assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        assert spec["template"]["metadata"]["labels"] == {
            "job-name": "job",
            "batch.kubernetes.io/job-name": "job",
            "controller-uid": uid,
            "batch.kubernetes.io/controller-uid": uid,
        }

    def test_parallel_jobs_have_no_default_of_completions(self):
        assert "completions" not in strict_store().create(JOBS, job(parallelism=3)).raw["spec"]

    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            case(
                "less than nothing",
                {"parallelism": -1},
                ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"],
            ),
            case(
                "an index without end",
                {"completionMode": "Indexed", "parallelism": 2},
                ["spec.completions: Required value: when completion mode is Indexed"],
            ),
            case(
                "pods that never end",
                {"template": {"spec": {"containers": [container()]}}},
                ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            ),
            case(
                "an index of none",
                {"backoffLimitPerIndex": 1},
                ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            ),
        ],
    )
    def test_refused(self, spec, expected):
        assert problems(JOBS, job(**spec)) == expected

    @pytest.mark.parametrize(
        ("created", "change", "path"),
        [
            case("parallelism may change", {}, {"parallelism": 5}, ""),
            case("completions may not", {}, {"completions": 5}, "spec.completions"),
            case(
                "but those of an elastic job",
                {"completionMode": "Indexed", "completions": 2, "parallelism": 2},
                {"completions": 5, "parallelism": 5},
                "",
            ),
            case("nor the mode", {}, {"completionMode": "Indexed"}, "spec.completionMode"),
        ],
    )
    def test_updates(self, created, change, path):
        store = strict_store()
        raw = store.create(JOBS, job(**created)).raw
        found = update_problems(store, JOBS, {**raw, "spec": {**raw["spec"], **change}})
        assert [problem.partition(":")[0] for problem in found] == ([path] if path else [])

    def test_a_suspended_job_may_still_be_placed_elsewhere(self):
        store = strict_store()
        raw = store.create(JOBS, job(suspend=True)).raw
        template = raw["spec"]["template"]
        placed = {**template, "spec": {**template["spec"], "nodeSelector": {"a": "b"}}}
        assert update_problems(store, JOBS, {**raw, "spec": {**raw["spec"], "template": placed}}) == []
        raw = store.patch(
            JOBS, "job", {"spec": {"suspend": False}}, namespace="default", patch_type="application/merge-patch+json"
        ).raw
        assert update_problems(store, JOBS, {**raw, "spec": {**raw["spec"], "template": template}})


def test_cron_jobs():
    template = {"spec": job()["spec"]}
    spec = strict_store().create(CRON_JOBS, named(spec={"schedule": "* * * * *", "jobTemplate": template})).raw["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"], spec["successfulJobsHistoryLimit"]) == ("Allow", False, 3)
    assert problems(CRON_JOBS, named(spec={"schedule": "* *", "jobTemplate": template})) == [
        'spec.schedule: Invalid value: "* *": expected exactly 5 fields, found 2'
    ]


EXPLICIT = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"


@pytest.mark.parametrize(
    ("zone", "found"),
    [
        ("Europe/Berlin", []),
        ("UTC", []),
        ("Etc/GMT+5", []),
        ("", ["timeZone must be nil or non-empty string"]),
        ("Local", [EXPLICIT]),
        ("LOCAL", [EXPLICIT, "unknown time zone LOCAL"]),
        ("Europe/Atlantis", ["unknown time zone Europe/Atlantis"]),
        ("Europe", ["unknown time zone Europe"]),
        ("../etc/passwd", ["unknown time zone ../etc/passwd"]),
        ("/Europe/Berlin", ["unknown time zone /Europe/Berlin"]),
        ("Europe//Berlin", ["unknown time zone Europe//Berlin"]),
        ("Europe/-Berlin", ["unknown time zone Europe/-Berlin"]),
        ("Europe/Berlin\n", ["unknown time zone Europe/Berlin\n"]),
        ("Europe/Berlin\0", ["unknown time zone Europe/Berlin\0"]),
        ("a" * 15, [f"unknown time zone {'a' * 15}"]),
    ],
)
def test_time_zones_of_cron_jobs(zone, found):
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job()["spec"]}, "timeZone": zone}
    value = json.dumps(zone)
    expected = [f"spec.timeZone: Invalid value: {value}: {problem}" for problem in found]
    assert problems(CRON_JOBS, named(spec=spec)) == expected
    store = strict_store()
    raw = store.create(CRON_JOBS, named(spec={**spec, "timeZone": "UTC"})).raw
    assert update_problems(store, CRON_JOBS, {**raw, "spec": {**raw["spec"], "timeZone": zone}}) == expected


def test_a_time_zone_in_the_schedule_is_refused():
    spec = {"schedule": "CRON_TZ=UTC 0 * * * *", "jobTemplate": {"spec": job()["spec"]}}
    (problem,) = problems(CRON_JOBS, named(spec=spec))
    assert problem.endswith("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
