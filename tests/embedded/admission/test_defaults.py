"""Defaults of the kinds that have little else. tests/cluster/test_defaults.py compares them with kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from moorage.api import resources as r
from moorage.embedded.admission.quantities import canonical
from moorage.embedded.builtin import BUILT_IN
from moorage.store.objects import Raw
from tests.embedded.admission.kit import case, container, named, pod, strict_store, update_problems, workload
from tests.kubectl import default_pod_samples, default_samples

EVERY = "\n---".join((default_samples.MANIFESTS, default_pod_samples.MANIFESTS, default_samples.LAST))
ONCE = {"containers": [container()], "restartPolicy": "Never"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}


def dig(raw: Any, path: str) -> Any:
    for step in path.split("."):
        raw = raw[int(step)] if step.isdigit() else raw[step]
    return raw


def asking(name: str, cpu: str) -> Raw:
    return container(name, resources={"requests": {"cpu": cpu}})


def ports(**more: Any) -> Raw:
    return named("web", spec={"ports": [{"port": 80}], **more})


@pytest.mark.parametrize(
    ("resource", "raw", "path", "expected"),
    [
        case(
            "slice port",
            r.ENDPOINT_SLICES,
            named(ports=[{"port": 1}]),
            "ports.0",
            {"name": "", "protocol": "TCP", "port": 1},
        ),
        case("slice without ports", r.ENDPOINT_SLICES, named(), "ports", None),
        case("endpoints", r.ENDPOINTS, named(subsets=[{"ports": [{"port": 1}]}]), "subsets.0.ports.0.protocol", "TCP"),
        case("ingress", r.INGRESSES, named(spec={}), "status", {"loadBalancer": {}}),
        case("policy", r.NETWORK_POLICIES, named(spec={"egress": [{}]}), "spec.policyTypes", ["Ingress", "Egress"]),
        case("role", r.ROLES, named(), "rules", None),
        case(
            "binding",
            r.ROLE_BINDINGS,
            named(roleRef={"kind": "Role", "name": "a"}, subjects=[{"kind": "User", "name": "u"}]),
            "subjects.0.apiGroup",
            "rbac.authorization.k8s.io",
        ),
        case("driver", r.CSI_DRIVERS, named("d.io", ""), "spec.volumeLifecycleModes", ["Persistent"]),
        case("lease", r.LEASES, named(), "spec", {}),
        case("volume", r.PERSISTENT_VOLUME_CLAIMS, named(spec=CLAIM), "spec.resources.requests.storage", "1Gi"),
        case(
            "claim template",
            r.STATEFUL_SETS,
            workload(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": CLAIM}]),
            "spec.volumeClaimTemplates.0.spec.volumeMode",
            "Filesystem",
        ),
        case("job labels", r.JOBS, named("j", spec={"template": {"spec": ONCE}}), "metadata.labels.job-name", "j"),
        case(
            "limits",
            r.LIMIT_RANGES,
            named(spec={"limits": [{"type": "Container", "max": {"cpu": 1}}]}),
            "spec.limits.0.defaultRequest",
            {"cpu": "1"},
        ),
        case(
            "grpc",
            r.PODS,
            pod(containers=[container(livenessProbe={"grpc": {"port": 1}})]),
            "spec.containers.0.livenessProbe.grpc.service",
            "",
        ),
        case(
            "hook",
            r.PODS,
            pod(containers=[container(lifecycle={"preStop": {"httpGet": {"port": 1}}})]),
            "spec.containers.0.lifecycle.preStop.httpGet.scheme",
            "HTTP",
        ),
        case(
            "quantity",
            r.PODS,
            pod(containers=[container(resources={"limits": {"memory": "1.5Gi", "cpu": 1}})]),
            "spec.containers.0.resources.requests",
            {"memory": "1536Mi", "cpu": "1"},
        ),
        case(
            "pod resources",
            r.PODS,
            pod(resources={"limits": {"cpu": 2, "memory": "1Gi"}}, containers=[asking("a", "0.5"), asking("b", "1")]),
            "spec.resources.requests",
            {"cpu": "1500m", "memory": "1Gi"},
        ),
        case(
            "balancer",
            r.SERVICES,
            ports(type="LoadBalancer", externalTrafficPolicy="Local"),
            "spec.healthCheckNodePort",
            30001,
        ),
        case(
            "no node ports",
            r.SERVICES,
            ports(type="LoadBalancer", allocateLoadBalancerNodePorts=False),
            "spec.ports",
            [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
        ),
    ],
)
def test_a_field_that_is_not_given_is_filled_in(resource, raw, path, expected):
    assert dig(strict_store().create(resource, raw).raw, path) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, "1"), ("0.5", "500m"), ("1.5Gi", "1536Mi"), ("1024Mi", "1Gi"), ("1000", "1k"), ("1500m", "1500m"),
        ("0", "0"), ("512Ki", "512Ki"), ("0.5Ki", "512"), ("1e3", "1e3"), ("12E6", "12e6"), ("100n", "100n"),
        ("-2048Ki", "-2Mi"), ("many", "many"), ("1.1Ki", "1126400m"),
    ],
)  # fmt: skip
def test_the_canonical_form_of_a_quantity(given, expected):
    assert canonical(given) == expected
    assert canonical(expected) == expected


def test_ports_of_the_node_are_filled_in_for_pods_and_not_for_templates():
    main = container(ports=[{"containerPort": 80}])
    made = strict_store().create(r.PODS, pod(hostNetwork=True, containers=[main])).raw
    assert dig(made, "spec.containers.0.ports.0.hostPort") == 80
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"hostNetwork": True, "containers": [main]}}
    made = strict_store().create(r.DEPLOYMENTS, workload(template=template)).raw
    assert "hostPort" not in dig(made, "spec.template.spec.containers.0.ports.0")


def test_writing_an_object_back_changes_nothing():
    """Defaults are the same for an object that has them already, so nothing gets a new version."""
    store = strict_store()
    by_kind = {(k.served.resource.api_version, k.served.resource.kind): k.served for k in BUILT_IN}
    for given in yaml.safe_load_all(EVERY):
        served = by_kind[given["apiVersion"], given["kind"]]
        if served.view is None and served.admission is None:
            raw = {**given, "metadata": {"namespace": "default", **given["metadata"]}}
            stored = store.create(served.resource, raw)
            assert store.replace(served.resource, stored.raw).version == stored.version, stored


def test_a_set_from_before_a_default_was_known_can_be_changed():
    store = strict_store()
    claim = {"metadata": {"name": "data"}, "spec": CLAIM}
    made = store.create(r.STATEFUL_SETS, workload(volumeClaimTemplates=[claim])).raw
    old = {**made, "spec": {**made["spec"], "volumeClaimTemplates": [claim]}}
    store.restore(r.STATEFUL_SETS, old)
    assert update_problems(store, r.STATEFUL_SETS, {**old, "spec": {**old["spec"], "replicas": 2}}) == []


@pytest.mark.parametrize(("resource", "counted"), [(r.CONFIG_MAPS, False), (r.ENDPOINT_SLICES, True)])
def test_only_some_kinds_have_a_generation(resource, counted):
    store = strict_store()
    made = store.create(resource, named()).raw
    assert made["metadata"].get("generation") == (1 if counted else None)
    field = {"ports": [{"port": 1}]} if counted else {"data": {"a": "b"}}
    changed = store.replace(resource, {**made, **field}).raw
    assert changed["metadata"].get("generation") == (2 if counted else None)


@pytest.mark.parametrize(
    ("containers", "limits"),
    [
        case("all have one", [{"memory": "64Mi"}, {"memory": "32Mi"}], {"cpu": "2", "memory": "96Mi"}),
        case("one has none", [{"memory": "64Mi"}, {}], {"cpu": "2"}),
    ],
)
def test_pod_level_limits_follow_from_those_of_all_containers(containers, limits):
    parts = [container(f"c{i}", resources={"limits": each}) for i, each in enumerate(containers)]
    given = pod(containers=parts, resources={"limits": {"cpu": "2"}})
    assert strict_store().create(r.PODS, given).raw["spec"]["resources"]["limits"] == limits
