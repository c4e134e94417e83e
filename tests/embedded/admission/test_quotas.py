"""ResourceQuotas and LimitRanges at admission: what is counted, filled in and refused, in the words of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import resources as r
from moorage.api.errors import Forbidden
from moorage.store.objects import Raw
from moorage.store.store import Store
from tests.embedded.admission.kit import case, container, named, pod, problems, strict_store

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "storageClassName": "slow"}
SLOW = "slow.storageclass.storage.k8s.io/requests.storage"
OF_PRIORITY = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]}


def limited(hard: Raw, **spec: Any) -> Store:
    store = strict_store()
    store.create(r.RESOURCE_QUOTAS, named("quota", spec={"hard": hard, **spec}))
    return store


def ranged(*limits: Raw) -> Store:
    store = strict_store()
    store.create(r.LIMIT_RANGES, named("limits", spec={"limits": list(limits)}))
    return store


def sized(name: str = "a", *, requests: Raw | None = None, limits: Raw | None = None, **spec: Any) -> Raw:
    amounts = {"requests": requests or {}, "limits": limits or {}}
    return pod(name, containers=[container(resources=amounts)], **spec)


def refused(store: Store, resource: Any, raw: Raw) -> str:
    with pytest.raises(Forbidden) as caught:
        store.create(resource, raw)
    return str(caught.value.status.message).partition(" is forbidden: ")[2]


def test_a_quota_is_exceeded():
    store = limited({"requests.cpu": "2", "pods": 3})
    store.create(r.PODS, sized("a", requests={"cpu": "1500m"}))
    assert refused(store, r.PODS, sized("b", requests={"cpu": "1"})) == (
        "exceeded quota: quota, requested: requests.cpu=1, used: requests.cpu=1500m, limited: requests.cpu=2"
    )
    store.create(r.PODS, sized("b", requests={"cpu": "0.5"}))
    store.delete(r.PODS, "a", namespace="default")
    store.create(r.PODS, sized("c", requests={"cpu": "1"}))


def test_several_resources_are_listed_in_order():
    store = limited({"pods": 0, "memory": "1Gi", "limits.cpu": 1})
    given = sized(requests={"memory": "2Gi"}, limits={"cpu": 2})
    assert refused(store, r.PODS, given) == (
        "exceeded quota: quota, requested: limits.cpu=2,memory=2Gi,pods=1, used: limits.cpu=0,memory=0,pods=0, "
        "limited: limits.cpu=1,memory=1Gi,pods=0"
    )


def test_containers_must_name_what_a_quota_limits():
    store = limited({"cpu": "2", "limits.memory": "1Gi"})
    assert refused(store, r.PODS, pod()) == "failed quota: quota: must specify cpu for: main; limits.memory for: main"


def test_a_finished_pod_uses_nothing():
    store = limited({"pods": 1})
    raw = store.create(r.PODS, pod("a")).raw
    store.replace(r.PODS, {**raw, "status": {**raw["status"], "phase": "Succeeded"}}, subresource="status")
    store.create(r.PODS, pod("b"))


def test_other_namespaces_and_loaded_objects_are_not_limited():
    store = limited({"pods": 0})
    store.create(r.PODS, pod(meta={"namespace": "other"}))
    store.load(r.PODS, pod())


@pytest.mark.parametrize(
    ("scopes", "spec", "counts"),
    [
        case("best effort", {"scopes": ["BestEffort"]}, {}, True),
        case("not best effort", {"scopes": ["NotBestEffort"]}, {}, False),
        case("terminating", {"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
        case("endless", {"scopes": ["Terminating"]}, {}, False),
        case("both", {"scopes": ["BestEffort", "NotTerminating"]}, {}, True),
        case("priority", {"scopeSelector": OF_PRIORITY}, {}, False),
    ],
)
def test_a_quota_counts_the_pods_of_its_scopes(scopes, spec, counts):
    store = limited({"pods": 0}, **scopes)
    if counts:
        assert refused(store, r.PODS, pod(**spec)).startswith("exceeded quota: quota, requested: pods=1")
    else:
        store.create(r.PODS, pod(**spec))


@pytest.mark.parametrize(
    ("resource", "raw", "hard"),
    [
        case("config maps", r.CONFIG_MAPS, named(), "configmaps"),
        case("any kind", r.CONFIG_MAPS, named(), "count/configmaps"),
        case("leases", r.LEASES, named(), "count/leases.coordination.k8s.io"),
        case("services", r.SERVICES, named(spec={"ports": [{"port": 1}]}), "services"),
        case("ports", r.SERVICES, named(spec={"type": "NodePort", "ports": [{"port": 1}]}), "services.nodeports"),
        case("claims", r.PERSISTENT_VOLUME_CLAIMS, named(spec=CLAIM), "persistentvolumeclaims"),
        case("class", r.PERSISTENT_VOLUME_CLAIMS, named(spec=CLAIM), SLOW),
        case("gpus", r.PODS, sized(limits={"example.com/gpu": 1}), "requests.example.com/gpu"),
    ],
)  # fmt: skip
def test_what_is_counted(resource, raw, hard):
    assert refused(limited({hard: 0}), resource, raw).startswith(f"exceeded quota: quota, requested: {hard}=")


def test_growth_is_limited_too():
    store = limited({"services.nodeports": 0})
    raw = store.create(r.SERVICES, named(spec={"ports": [{"port": 1}]})).raw
    with pytest.raises(Forbidden, match=r"exceeded quota: quota, requested: services\.nodeports=1"):
        store.replace(r.SERVICES, {**raw, "spec": {**raw["spec"], "type": "NodePort"}})


def test_a_limit_range_fills_in_requests_and_limits():
    store = ranged({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m", "memory": "1Mi"}})
    made = store.create(r.PODS, sized(requests={"memory": "2Mi"}, initContainers=[container("first")])).raw
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"memory": "2Mi", "cpu": "100m"},
        "limits": {"cpu": "1"},
    }
    assert made["status"]["qosClass"] == "Burstable"
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main; "
        "cpu, memory request for init container first; cpu limit for init container first"
    )


@pytest.mark.parametrize(
    ("limit", "raw", "expected"),
    [
        case(
            "least",
            {"type": "Pod", "min": {"cpu": "1"}},
            sized(requests={"cpu": "100m"}),
            "minimum cpu usage per Pod is 1, but request is 100m",
        ),
        case(
            "most",
            {"type": "Container", "max": {"cpu": "1"}},
            sized(limits={"cpu": 2}),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        case(
            "no limit",
            {"type": "Pod", "max": {"cpu": "1"}},
            pod(),
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        case(
            "ratio",
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
            sized(requests={"cpu": 1}, limits={"cpu": 3}),
            "cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000",
        ),
        case(
            "two",
            {"type": "Pod", "min": {"cpu": "1", "memory": "1Gi"}},
            pod(),
            "[minimum cpu usage per Pod is 1.  No request is specified, "
            "minimum memory usage per Pod is 1Gi.  No request is specified]",
        ),
    ],
)
def test_pods_stay_within_the_bounds(limit, raw, expected):
    assert refused(ranged(limit), r.PODS, raw) == expected


def test_claims_stay_within_the_bounds():
    store = ranged({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}})
    expected = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    assert refused(store, r.PERSISTENT_VOLUME_CLAIMS, named(spec=CLAIM)) == expected


def test_quotas_and_limits_hold_quantities():
    quota = named(spec={"hard": {"pods": "many", "cpu": "-1"}})
    assert [problem.partition(":")[0] for problem in problems(r.RESOURCE_QUOTAS, quota)] == [
        "spec.hard[pods]",
        "spec.hard[cpu]",
    ]
    limits = named(spec={"limits": [{"type": "Pod", "max": {"cpu": "much"}}]})
    assert [problem.partition(":")[0] for problem in problems(r.LIMIT_RANGES, limits)] == ["spec.limits[0].max[cpu]"]
