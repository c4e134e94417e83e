"""In random clusters every plugin that explains itself has details for the nodes that it refuses, and for
no others; `explained` checks that."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.explain.evaluate import EvaluatedCase
from moorage.framework.optional import ExplainingPlugin
from tests.plugins.crowded_worlds import ZONE, Json, cases
from tests.plugins.explained import explained

CLAIMS = ("c0", "c1", "c2", "gone")
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
taints = st.lists(st.fixed_dictionaries({"key": st.sampled_from("tu"), "effect": effects}), max_size=2)
ports = st.fixed_dictionaries(
    {"hostPort": st.integers(80, 81), "protocol": st.sampled_from(["TCP", "UDP"])},
    optional={"hostIP": st.sampled_from(["0.0.0.0", "10.0.0.1"])},
)
expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from([ZONE, "rack", "none"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["a", "b", "r"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from([ZONE, "rack", "none"]), "operator": st.sampled_from(["Exists", "DoesNotExist", "Odd"])}
    ),
    st.fixed_dictionaries({"key": st.just("rack"), "operator": st.just("Gt"), "values": st.just(["4"])}),
)
fields = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.sampled_from([["n0"], ["n1"]]),
    }
)
node_terms = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(expressions, max_size=2), "matchFields": st.lists(fields, max_size=1)}
)
disks = st.sampled_from(
    [
        {"gcePersistentDisk": {"pdName": "disk"}},
        {"awsElasticBlockStore": {"volumeID": "disk"}},
        {"rbd": {"monitors": ["m1", "m2"], "image": "i", "pool": "p"}},
        {"configMap": {"name": "c"}},
    ]
)
mounts = st.builds(lambda name: {"persistentVolumeClaim": {"claimName": name}}, st.sampled_from(CLAIMS))
volumes = st.lists(st.one_of(mounts, disks), max_size=2)


def claim(name: str, volume: str, storage_class: str, mode: str) -> Json:
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {
        "metadata": {"name": name, "uid": name, "namespace": "x", "annotations": done},
        "spec": {
            "volumeName": volume,
            "storageClassName": storage_class,
            "accessModes": [mode],
            "resources": {"requests": {"storage": "2Gi"}},
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


@st.composite
def storage(draw: st.DrawFn, nodes: int) -> Json:
    claims, pvs = [], []
    for number, name in enumerate(CLAIMS[:-1]):
        volume = draw(st.sampled_from(["", f"v{number}", f"v{number}", "lost"]))
        kind = draw(st.sampled_from(["local", "fast", "now", "unknown"]))
        mode = draw(st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"]))
        claims.append(claim(name, volume, kind, mode))
        wanted = {"key": ZONE, "operator": "In", "values": [draw(st.sampled_from("ab"))]}
        near = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
        spec: Json = {"capacity": {"storage": "2Gi"}, "accessModes": [mode], "storageClassName": kind}
        spec["csi"] = {"driver": "d", "volumeHandle": f"h{number}"}
        if draw(st.booleans()):
            spec["nodeAffinity"] = near
        if volume == f"v{number}":
            spec["claimRef"] = {"namespace": "x", "name": name, "uid": name}
        labels = draw(st.sampled_from([{}, {ZONE: "a__b"}, {ZONE: "b"}]))
        metadata = {"name": f"v{number}", "uid": f"v{number}", "labels": labels}
        status = {"phase": "Bound" if "claimRef" in spec else "Available"}
        pvs.append({"metadata": metadata, "spec": spec, "status": status})
    classes = {"local": "kubernetes.io/no-provisioner", "fast": "d", "now": "d"}
    topology = [{"matchLabels": {ZONE: zone}} for zone in draw(st.lists(st.sampled_from("ab"), max_size=2))]
    return {
        "pvcs": claims,
        "pvs": pvs,
        "storageClasses": [
            {
                "metadata": {"name": name, "uid": name},
                "provisioner": provisioner,
                "volumeBindingMode": "Immediate" if name == "now" else "WaitForFirstConsumer",
            }
            for name, provisioner in classes.items()
        ],
        "csiDrivers": [{"metadata": {"name": "d", "uid": "d"}, "spec": {"storageCapacity": True}}],
        "csiStorageCapacities": [
            {
                "metadata": {"name": f"s{i}", "uid": f"s{i}", "namespace": "x"},
                "storageClassName": "fast",
                "nodeTopology": found,
                "capacity": draw(st.sampled_from(["1Gi", "3Gi"])),
            }
            for i, found in enumerate(topology)
        ],
        "csiNodes": [
            {
                "metadata": {"name": f"n{i}", "uid": f"n{i}"},
                "spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 1}}]},
            }
            for i in range(draw(st.integers(0, nodes)))
        ],
    }


@st.composite
def mixed(draw: st.DrawFn) -> Json:
    """A crowded case with taints, ports, requests, node affinity, features and volumes as well."""
    case = draw(cases())
    for node in case["nodes"]:
        node["spec"]["taints"] = draw(taints)
    for pod in [*case["pods"], case["pod"]]:
        [container] = pod["spec"]["containers"]
        container["ports"] = draw(st.lists(ports, max_size=2))
        container["resources"] = {"requests": draw(st.sampled_from([{}, {"cpu": "3"}, {"memory": "9Gi"}]))}
        pod["spec"]["volumes"] = [{"name": f"m{i}", **volume} for i, volume in enumerate(draw(volumes))]
    spec = case["pod"]["spec"]
    spec["nodeName"] = draw(st.sampled_from(["", "", "", "n0"]))
    if draw(st.booleans()):
        terms = {"nodeSelectorTerms": draw(st.lists(node_terms, min_size=1, max_size=3))}
        spec["affinity"]["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if draw(st.booleans()):
        spec |= {"hostNetwork": True, "hostUsers": False}
    return {**case, **draw(storage(len(case["nodes"])))}


def test_a_refusal_has_details_and_nothing_else_has():
    explaining: Counter[str] = Counter()

    @settings(max_examples=120, derandomize=True)
    @given(mixed())
    def check(case: Json) -> None:
        world = EvaluatedCase(case)
        profile = next(iter(world.engine.profiles.values()))
        for name, plugin in profile.plugins.items():
            if isinstance(plugin, ExplainingPlugin) and name != "NodeUnschedulable":  # its reason says all
                explaining[name] += bool(explained(plugin, world.pod, world.nodes))

    check()
    silent = [name for name, often in explaining.items() if not often]
    assert not silent, "these were never asked: the clusters are too plain"
