"""Good objects of the kinds with rules, changed at random places: each write is stored whole or refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api import resources
from moorage.api.errors import BadRequest, Conflict, Forbidden, Invalid
from moorage.api.resources import Resource
from moorage.store.objects import Raw, copy_json
from tests.embedded.admission.kit import container, named, pod, strict_store, workload

VALUES: list[Any] = [
    None, "", "a", "A b", "25%", "1", "-1", "Always", "None", "x/y", "1Gi", 0, 1, -1, 80, 2**31, 1.5, True,
    [], {}, [{}], ["a"], {"a": "b"}, [{"name": "a"}], {"matchLabels": {"app": "web"}},
]  # fmt: skip
FULL_POD = pod(
    containers=[
        container(
            ports=[{"containerPort": 80, "hostPort": 80}],
            resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            env=[{"name": "A", "value": "b"}],
            livenessProbe={"httpGet": {"port": 80}},
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
        )
    ],
    initContainers=[container("first")],
    volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    nodeSelector={"a": "b"},
    schedulingGates=[{"name": "g"}],
    tolerations=[{"key": "a", "operator": "Exists"}],
    affinity={
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        }
    },
    topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
)
JOB_TEMPLATE = {"spec": {"containers": [container()], "restartPolicy": "Never"}}
GOOD: list[tuple[Resource, Raw]] = [
    (resources.PODS, FULL_POD),
    (
        resources.NODES,
        named("n", "", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "1"}}),
    ),
    (resources.NAMESPACES, named("team", "")),
    (resources.SERVICES, named("s", spec={"type": "NodePort", "ports": [{"port": 80}]})),
    (resources.DEPLOYMENTS, workload()),
    (resources.REPLICA_SETS, workload()),
    (resources.STATEFUL_SETS, workload(serviceName="s")),
    (resources.DAEMON_SETS, workload()),
    (resources.JOBS, named("j", spec={"template": JOB_TEMPLATE})),
    (resources.CRON_JOBS, named("c", spec={"schedule": "@daily", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}})),
    (
        resources.PERSISTENT_VOLUME_CLAIMS,
        named("c", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    ),
    (
        resources.PERSISTENT_VOLUMES,
        named("v", "", spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"}, "nfs": {}}),
    ),
    (resources.STORAGE_CLASSES, named("s", "", provisioner="a.b/c", parameters={"a": "b"})),
    (resources.POD_DISRUPTION_BUDGETS, named("b", spec={"minAvailable": 1})),
    (resources.PRIORITY_CLASSES, named("p", "", value=5)),
    (resources.CONFIG_MAPS, named("c", data={"a": "b"})),
    (resources.SECRETS, named("s", data={"a": "eA=="})),
    (resources.LEASES, named("l", spec={"leaseDurationSeconds": 15})),
    (resources.CSI_NODES, named("n", "", spec={"drivers": [{"name": "d", "nodeID": "n"}]})),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path in a JSON value, the whole included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


def changed(raw: Raw, rng: random.Random) -> Raw:
    """A copy with another value somewhere, or with a field less or more."""
    copy: Raw = copy_json(raw)
    path = rng.choice(places(copy)[1:])
    target: Any = copy
    for step in path[:-1]:
        target = target[step]
    how = rng.random()
    if how < 0.2:
        del target[path[-1]]
    elif how < 0.3 and isinstance(target, list):
        target.append(copy_json(target[path[-1]]))
    else:
        target[path[-1]] = rng.choice(VALUES)
    return copy


@pytest.mark.parametrize(("resource", "good"), GOOD, ids=[resource.plural for resource, _ in GOOD])
def test_a_change_is_stored_whole_or_refused(resource, good):
    stored = refused = 0
    for seed in range(150):
        rng, store = random.Random(seed), strict_store()
        before = store.create(resource, good)
        for raw in (changed(before.raw, rng), changed(good, rng)):
            if not isinstance(raw.get("metadata"), dict):
                continue
            raw["metadata"] = {**raw["metadata"], "name": before.name, "namespace": before.namespace or None}
            raw["metadata"].pop("resourceVersion", None)
            raw["metadata"].pop("uid", None)
            version = store.version
            try:
                store.replace(resource, raw, subresource=rng.choice(("", "", "status")))
                stored += 1
            except (BadRequest, Forbidden, Invalid, Conflict):
                refused += 1
                assert store.version == version, f"seed {seed}"
        # Whatever has been stored is good enough to be stored again as it is.
        current = store.get(resource, before.name, before.namespace)
        assert store.replace(resource, copy_json(current.raw)) is current, f"seed {seed}"
    assert min(stored, refused) > 10, (stored, refused)
