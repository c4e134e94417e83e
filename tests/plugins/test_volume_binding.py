"""VolumeBinding without time: PreFilter, Filter and its reasons, scores, hints; a plain model of Filter."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from moorage.api.node import ZONE
from moorage.api.pod import EphemeralVolumeSource, Volume
from moorage.api.resource_weights import UtilizationShapePoint
from moorage.api.storage import (
    AWSElasticBlockStoreVolumeSource,
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    CSIVolumeSource,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from moorage.framework.events import QueueingHint
from moorage.plugins.csi_translation import MIGRATED_PLUGINS
from moorage.plugins.volume_binding import hints, scoring
from moorage.plugins.volumes import BETA_CLASS, SELECTED_NODE, own_claim
from moorage.testing.builders import make_node, make_pod
from moorage.testing.volumes import make_csi_node, make_pv, make_pvc, make_storage_class
from tests.plugins.volume_world import ask

PLUGIN = "VolumeBinding"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
HOST = "kubernetes.io/hostname"
WAITING = make_storage_class("wait", provisioner="kubernetes.io/no-provisioner", wait=True)
DYNAMIC = make_storage_class("dynamic", provisioner="driver", wait=True)
NODES = [make_node("a", labels={"disk": "ssd"}), make_node("b", labels={"disk": "hdd"}), make_node("c")]


def changed(obj, **metadata) -> Any:
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, **metadata))


def in_phase(obj, phase) -> Any:
    return msgspec.structs.replace(obj, status=msgspec.structs.replace(obj.status, phase=phase))


def waiting_claim(name="claim", **options) -> Any:
    return make_pvc(name, **{"storage_class": "wait", **options})


def refused(asked) -> Any:
    found = asked.together()
    assert asked.one_by_one() == found or "" in found
    assert all(code == UNRESOLVABLE for code, _ in found.values())
    return {name: reasons for name, (_, reasons) in found.items()}


def ask_pod(*objects, claims=("claim",), version="") -> Any:
    return ask(PLUGIN, make_pod("incoming", claims=claims), *NODES, *objects, version=version)


EPHEMERAL = Volume(name="data", ephemeral=EphemeralVolumeSource())


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        pytest.param(make_pod(claims=["claim"]), [], 'persistentvolumeclaim "claim" not found', id="claim missing"),
        pytest.param(
            make_pod("pod", volumes=[EPHEMERAL]),
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-data"',
            id="ephemeral claim not made yet",
        ),
        pytest.param(
            make_pod("pod", volumes=[EPHEMERAL]),
            [make_pvc("pod-data")],
            "PVC default/pod-data was not created for pod default/pod (pod is not owner)",
            id="ephemeral claim of somebody else",
        ),
        pytest.param(
            make_pod(claims=["claim"]),
            [in_phase(make_pvc(volume="v"), "Lost")],
            'persistentvolumeclaim "claim" bound to non-existent persistentvolume "v"',
            id="claim lost",
        ),
        pytest.param(
            make_pod(claims=["claim"]),
            [changed(make_pvc(), deletion_timestamp="2026-01-01T00:00:00Z")],
            'persistentvolumeclaim "claim" is being deleted',
            id="claim being deleted",
        ),
        pytest.param(
            make_pod(claims=["claim"]),
            [make_pvc(storage_class="standard"), make_storage_class()],
            "pod has unbound immediate PersistentVolumeClaims",
            id="immediate and unbound",
        ),
        pytest.param(
            make_pod(claims=["claim"]),
            [make_pvc(storage_class="unknown")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="unknown class counts as immediate",
        ),
        pytest.param(
            make_pod(claims=["claim"]),
            [changed(waiting_claim(volume="v"), annotations={}), WAITING],
            "pod has unbound immediate PersistentVolumeClaims",
            id="bound on one side only",
        ),
    ],
)
def test_prefilter_refuses_claims_that_cannot_be_used(pod, objects, reason):
    asked = ask(PLUGIN, pod, *NODES, *objects)
    assert (asked.pre.code.label, asked.pre.reasons) == (UNRESOLVABLE, (reason,))


def test_prefilter_skips_pods_without_claims():
    assert ask(PLUGIN, make_pod(volumes=[Volume(name="scratch")]), *NODES).skipped


def test_class_without_binding_mode_is_an_error():
    broken = msgspec.structs.replace(WAITING, volume_binding_mode=None)
    asked = ask_pod(waiting_claim(), broken)
    assert asked.pre.code.label == "Error"
    assert asked.pre.reasons == ('VolumeBindingMode not set for StorageClass "wait"',)


def test_own_ephemeral_claim_is_used():
    pod = make_pod("pod", uid="me", volumes=[EPHEMERAL])
    owner = OwnerReference(kind="Pod", name="pod", uid="me", controller=True)
    claim = changed(make_pvc("pod-data", volume="v"), owner_references=(owner,))
    volume = make_pv("v", claim=claim, nodes={"disk": ["ssd"]})
    assert refused(ask(PLUGIN, pod, *NODES, claim, volume)) == {"b": (AFFINITY,), "c": (AFFINITY,)}


def test_bound_volume_must_be_reached():
    claim = make_pvc(volume="v")
    assert refused(ask_pod(claim, make_pv("v", claim=claim))) == {}
    volume = make_pv("v", claim=claim, nodes={"disk": ["ssd", "nvme"]})
    assert refused(ask_pod(claim, volume)) == {"b": (AFFINITY,), "c": (AFFINITY,)}
    assert refused(ask_pod(claim)) == dict.fromkeys("abc", (GONE,))


def test_each_node_shows_the_first_bound_claim_that_fails():
    near, lost = make_pvc("near", volume="v"), make_pvc("lost", volume="gone")
    volume = make_pv("v", claim=near, nodes={"disk": ["ssd"]})
    asked = ask_pod(near, lost, volume, claims=["near", "lost"])
    assert refused(asked) == {"a": (GONE,), "b": (AFFINITY,), "c": (AFFINITY,)}
    asked = ask_pod(near, lost, volume, claims=["lost", "near"])
    assert refused(asked) == dict.fromkeys("abc", (GONE,))


def test_bound_and_unbound_claims_are_reported_together():
    claim = make_pvc("bound", volume="v")
    volume = make_pv("v", claim=claim, nodes={"disk": ["ssd"]})
    asked = ask_pod(claim, volume, waiting_claim(), WAITING, claims=["bound", "claim"])
    assert refused(asked) == {"a": (NO_VOLUME,), "b": (AFFINITY, NO_VOLUME), "c": (AFFINITY, NO_VOLUME)}


def test_migrated_volume_follows_the_topology_of_its_driver():
    claim = make_pvc(volume="v")
    source = AWSElasticBlockStoreVolumeSource(volume_id="vol-1")
    volume = make_pv("v", claim=claim, nodes={ZONE: ["z"]}, aws_elastic_block_store=source)
    old = make_node("old", labels={ZONE: "z"})
    new = make_node("new", labels={"topology.ebs.csi.aws.com/zone": "z"})
    csi_nodes = [
        changed(make_csi_node(name), annotations={MIGRATED_PLUGINS: "kubernetes.io/aws-ebs"}) for name in ("new", "old")
    ]
    pod = make_pod(claims=["claim"])
    assert refused(ask(PLUGIN, pod, old, new, claim, volume)) == {"new": (AFFINITY,)}
    assert refused(ask(PLUGIN, pod, old, new, claim, volume, *csi_nodes)) == {"old": (AFFINITY,)}
    assert refused(ask(PLUGIN, pod, old, new, claim, volume, csi_nodes[0])) == {}
    odd = AWSElasticBlockStoreVolumeSource(volume_id="aws://z/disk")
    broken = make_pv("v", claim=claim, aws_elastic_block_store=odd)
    asked = ask(PLUGIN, pod, old, new, claim, broken, csi_nodes[0])
    code, reasons = asked.together()[""]
    assert code == "Error"
    assert reasons[0].startswith('running "VolumeBinding" filter plugin: could not translate pv: ')


def local(name, node, size="1Gi", **options) -> Any:
    return make_pv(name, size=size, storage_class="wait", nodes={HOST: [node]}, **options)


@pytest.mark.parametrize(
    ("claim", "volumes", "fits"),
    [
        pytest.param(waiting_claim(), [], "", id="none"),
        pytest.param(waiting_claim(), [local("v", "a")], "a", id="one"),
        pytest.param(waiting_claim(), [local("v", "gone"), local("w", "b")], "b", id="the node is gone"),
        pytest.param(waiting_claim(size="2Gi"), [local("v", "a")], "", id="too small"),
        pytest.param(waiting_claim(), [make_pv("v", storage_class="other")], "", id="another class"),
        pytest.param(waiting_claim(), [in_phase(local("v", "a"), "Released")], "", id="released is not available"),
        pytest.param(
            waiting_claim(),
            [changed(local("v", "a"), deletion_timestamp="2026-01-01T00:00:00Z")],
            "",
            id="being deleted",
        ),
        pytest.param(waiting_claim(access_modes=["ReadWriteMany"]), [local("v", "a")], "", id="another access mode"),
        pytest.param(waiting_claim(), [local("v", "a", volume_mode="Block")], "", id="another mode"),
        pytest.param(waiting_claim(), [local("v", "a", volume_mode="Filesystem")], "a", id="default mode"),
        pytest.param(
            waiting_claim(), [local("v", "a", volume_attributes_class_name="gold")], "", id="another attributes class"
        ),
        pytest.param(
            waiting_claim(),
            [local("v", "a", claim=waiting_claim("other")), local("w", "b")],
            "b",
            id="taken by another claim",
        ),
        pytest.param(
            waiting_claim(),
            [in_phase(local("v", "a", claim=waiting_claim()), "Available"), local("w", "b")],
            "a",
            id="reserved for this one, so no other counts",
        ),
        pytest.param(
            changed(waiting_claim(storage_class=None), annotations={BETA_CLASS: "wait"}),
            [local("v", "a")],
            "a",
            id="class by annotation",
        ),
    ],
)
def test_static_volumes_are_matched(claim, volumes, fits):
    asked = ask_pod(claim, WAITING, *volumes)
    assert refused(asked) == {name: (NO_VOLUME,) for name in "abc" if name not in fits}


def test_selector_of_the_claim_is_honoured():
    spec = waiting_claim().spec
    wanted = LabelSelector(match_labels={"tier": "gold"})
    claim = msgspec.structs.replace(waiting_claim(), spec=msgspec.structs.replace(spec, selector=wanted))
    volumes = [local("v", "a", labels={"tier": "gold"}), local("w", "b")]
    assert refused(ask_pod(claim, WAITING, *volumes)) == {"b": (NO_VOLUME,), "c": (NO_VOLUME,)}
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="k", operator="Like"),))
    broken = msgspec.structs.replace(claim, spec=msgspec.structs.replace(spec, selector=bad))
    assert ask_pod(broken, WAITING, *volumes).together()[""][0] == "Error"


def plan_on(asked, name) -> Any:
    node = next(node for node in asked.nodes if node.name == name)
    plan = asked.plugin._finder.find(asked.state.read("VolumeBinding.claims"), node.alone()).plan(0)
    return {claim.name: volume.name for claim, volume in plan.static}, [c.name for c in plan.dynamic]


def test_smallest_volume_goes_to_the_smallest_claim():
    claims = [waiting_claim("large", size="5Gi"), waiting_claim("small", size="1Gi")]
    volumes = [local(f"v{size}", "a", f"{size}Gi") for size in (8, 2, 6)]
    asked = ask_pod(*claims, WAITING, *volumes, claims=["large", "small"])
    assert refused(asked) == {"b": (NO_VOLUME,), "c": (NO_VOLUME,)}
    assert plan_on(asked, "a") == ({"small": "v2", "large": "v6"}, [])


def test_a_claim_without_a_volume_is_provisioned_beside_one_that_has_one():
    claims = [make_pvc("one", storage_class="dynamic"), make_pvc("two", storage_class="dynamic", size="2Gi")]
    volume = make_pv("v", storage_class="dynamic", nodes={HOST: ["a"]})
    asked = ask_pod(*claims, DYNAMIC, volume, claims=["two", "one"])
    assert refused(asked) == {}
    assert plan_on(asked, "a") == ({"one": "v"}, ["two"])
    assert plan_on(asked, "b") == ({}, ["one", "two"])


def topology(key, *values) -> Any:
    requirement = TopologySelectorLabelRequirement(key=key, values=values)
    return TopologySelectorTerm(match_label_expressions=(requirement,))


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ((), "abc"),
        ((topology("disk", "ssd"),), "a"),
        ((topology("disk", "ssd"), topology("disk", "hdd")), "ab"),
        ((TopologySelectorTerm(),), ""),
        ((topology("disk"), topology("disk", "hdd")), "b"),
    ],
)
def test_allowed_topologies_bound_provisioning(terms, fits):
    storage_class = msgspec.structs.replace(DYNAMIC, allowed_topologies=terms)
    asked = ask_pod(make_pvc(storage_class="dynamic"), storage_class)
    assert refused(asked) == {name: (NO_VOLUME,) for name in "abc" if name not in fits}


def test_selected_node_is_the_only_one():
    claim = make_pvc(storage_class="dynamic", annotations={SELECTED_NODE: "b"})
    asked = ask_pod(claim, DYNAMIC)
    assert refused(asked) == {"a": (NO_VOLUME,), "c": (NO_VOLUME,)}
    assert plan_on(asked, "b") == ({}, ["claim"])


def driver(tracked=True, name="driver") -> Any:
    return CSIDriver(
        kind="CSIDriver", metadata=ObjectMeta(name=name, uid=name), spec=CSIDriverSpec(storage_capacity=tracked)
    )


def capacity(name, disk, amount=None, largest=None, storage_class="dynamic") -> Any:
    return CSIStorageCapacity(
        kind="CSIStorageCapacity",
        metadata=ObjectMeta(name=name, namespace="kube-system", uid=name),
        node_topology=None if disk is None else LabelSelector(match_labels={"disk": disk} if disk else {}),
        storage_class_name=storage_class,
        capacity=amount,
        maximum_volume_size=largest,
    )


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        pytest.param([], "abc", id="no driver object"),
        pytest.param([driver(tracked=False)], "abc", id="driver does not publish"),
        pytest.param([driver()], "", id="nothing published"),
        pytest.param([driver(), capacity("x", "ssd", "2Gi")], "a", id="enough in one place"),
        pytest.param([driver(), capacity("x", "ssd", "1Gi")], "", id="too little"),
        pytest.param([driver(), capacity("x", "ssd", "9Gi", "1Gi")], "", id="the largest volume is smaller"),
        pytest.param([driver(), capacity("x", "ssd", "1Gi", "2Gi")], "a", id="the largest volume counts"),
        pytest.param([driver(), capacity("x", None, "9Gi")], "", id="null topology is nowhere"),
        pytest.param([driver(), capacity("x", "", "9Gi")], "abc", id="empty topology is everywhere"),
        pytest.param([driver(), capacity("x", "ssd", "9Gi", storage_class="y")], "", id="another class"),
        pytest.param([driver(), capacity("x", "ssd", "9Gi"), capacity("y", "hdd", "9Gi")], "ab", id="several"),
    ],
)
def test_provisioning_needs_storage(objects, fits):
    asked = ask_pod(make_pvc(storage_class="dynamic", size="2Gi"), DYNAMIC, *objects)
    assert refused(asked) == {name: (NO_SPACE,) for name in "abc" if name not in fits}


def test_first_claim_that_cannot_be_provisioned_is_reported():
    full = make_pvc("full", storage_class="dynamic", size="1Gi")
    never = waiting_claim("never", size="2Gi")
    asked = ask_pod(full, never, DYNAMIC, WAITING, driver(), claims=["never", "full"])
    assert refused(asked) == dict.fromkeys("abc", (NO_SPACE,))
    larger = make_pvc("full", storage_class="dynamic", size="3Gi")
    asked = ask_pod(larger, never, DYNAMIC, WAITING, driver(), claims=["never", "full"])
    assert refused(asked) == dict.fromkeys("abc", (NO_VOLUME,))


SIZES = st.integers(1, 3)
STATIC = st.tuples(SIZES, st.sampled_from(["", "a", "b", "ab"]), st.sampled_from([None, 0, 1, 9]))


def plain_verdict(node, claims, volumes, dynamic) -> Any:
    """One node by plain loops: the smallest claim first takes the smallest volume that is left."""
    taken = set()
    for number, size in sorted(enumerate(claims), key=lambda item: item[1]):
        fitting = [
            (v_size, f"v{index}", reserved)
            for index, (v_size, places, reserved) in enumerate(volumes)
            if index not in taken and v_size >= size and reserved in (None, number)
        ]
        mine = [entry for entry in fitting if entry[2] == number]
        pool = mine[:1] or [entry for entry in fitting if entry[2] is None]
        reached = [e for e in pool if not volumes[int(e[1][1:])][1] or node in volumes[int(e[1][1:])][1]]
        if reached:
            taken.add(int(min(reached, key=lambda e: (e[0], e[1]))[1][1:]))
        elif not dynamic:
            return (NO_VOLUME,)
    return ()


@settings(deadline=None)
@given(claims=st.lists(SIZES, min_size=1, max_size=3), volumes=st.lists(STATIC, max_size=5), dynamic=st.booleans())
def test_matching_agrees_with_plain_loops(claims, volumes, dynamic):
    name = "dynamic" if dynamic else "wait"
    made = [make_pvc(f"c{n}", storage_class=name, size=f"{size}Gi") for n, size in enumerate(claims)]
    reservable = {**dict(enumerate(made)), 9: make_pvc("stranger", storage_class=name)}
    offered = [
        in_phase(
            make_pv(
                f"v{n}",
                size=f"{size}Gi",
                storage_class=name,
                nodes={HOST: list(places)} if places else None,
                claim=None if reserved is None else reservable.get(reserved, reservable[9]),
            ),
            "Available",
        )
        for n, (size, places, reserved) in enumerate(volumes)
    ]
    asked = ask_pod(*made, DYNAMIC, WAITING, *offered, claims=[claim.name for claim in made])
    expected = {node: plain_verdict(node, claims, volumes, dynamic) for node in "abc"}
    assert refused(asked) == {node: reasons for node, reasons in expected.items() if reasons}


SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))


@pytest.mark.parametrize(
    ("sizes", "score"),
    [
        ([], 0),
        ([(1, 100)], 99),
        ([(50, 100)], 50),
        ([(100, 100)], 0),
        ([(30, 100), (60, 100)], 55),
        ([(30, 100), (61, 100)], 55),
    ],
)
def test_scores_follow_the_shape(sizes, score):
    classes = [make_storage_class(f"s{n}", provisioner="kubernetes.io/no-provisioner", wait=True) for n in range(2)]
    claims = [make_pvc(f"c{n}", storage_class=f"s{n}", size=f"{asked}Mi") for n, (asked, _) in enumerate(sizes)]
    volumes = [make_pv(f"v{n}", storage_class=f"s{n}", size=f"{size}Mi") for n, (_, size) in enumerate(sizes)]
    volumes = [in_phase(volume, "Available") for volume in volumes]
    asked = ask_pod(*claims, *classes, *volumes, claims=[claim.name for claim in claims])
    asked.plugin._shape = SHAPE
    assert asked.plugin.score(asked.state, asked.pod, asked.nodes[0]) == score


def test_shape_is_flat_outside_and_cut_towards_zero_inside():
    shape = (UtilizationShapePoint(utilization=10, score=2), UtilizationShapePoint(utilization=40, score=9))
    assert [scoring.shape_score(shape, percent) for percent in (0, 10, 11, 39, 40, 99)] == [
        20, 20, 22, 87, 90, 90,
    ]  # fmt: skip
    assert scoring.shape_score(SHAPE, 33) == 67


def test_static_and_dynamic_plans_are_scored():
    asked = ask_pod(waiting_claim(size="1Gi"), WAITING, local("v", "a", "4Gi"))
    asked.plugin._shape = SHAPE
    assert asked.plugin.pre_score(asked.state, asked.pod, asked.nodes) is None
    assert asked.plugin.score(asked.state, asked.pod, asked.nodes[0]) == 75
    claim = make_pvc(storage_class="dynamic", size="1Gi")
    asked = ask_pod(claim, DYNAMIC, driver(), capacity("x", "ssd", "2Gi"))
    asked.plugin._shape = SHAPE
    assert asked.plugin.score(asked.state, asked.pod, asked.nodes[0]) == 50


def test_without_the_gate_nothing_is_scored():
    asked = ask_pod(waiting_claim(), WAITING, local("v", "a"), version="1.36")
    assert asked.plugin.pre_score(asked.state, asked.pod, asked.nodes).is_skip


def test_with_the_gate_a_pod_without_claims_scores_nothing_on_every_node():
    asked = ask_pod(claims=[], version="1.37")
    assert asked.plugin.pre_score(asked.state, asked.pod, asked.nodes) is None
    assert asked.plugin.score_into(asked.state, asked.pod, asked.nodes, np.zeros(3, dtype=np.int64)) == 0


def test_a_capacity_without_bytes_counts_as_used_up_and_stops_nothing():
    """kube-scheduler 1.37.1 ends with a nil pointer: maximumVolumeSize makes it sufficient, and capacity is scored."""
    unknown = capacity("x", "ssd", largest="8Gi")
    claim = make_pvc(storage_class="dynamic", size="1Gi")
    asked = ask_pod(claim, DYNAMIC, driver(), unknown, capacity("y", "hdd", "4Gi"), version="1.37")
    assert refused(asked) == {"c": (NO_SPACE,)}
    out = np.full(3, -1, dtype=np.int64)
    assert asked.plugin.score_into(asked.state, asked.pod, asked.nodes, out) is None
    assert dict(zip(asked.nodes.names, out.tolist(), strict=True)) == {"a": 0, "b": 75, "c": 0}


def test_hints():
    pod = make_pod("p", claims=["claim"], volumes=[EPHEMERAL, Volume(csi=CSIVolumeSource(driver="driver"))])
    limited = msgspec.structs.replace(DYNAMIC, allowed_topologies=(topology("disk", "ssd"),))
    assert hints.class_changed(pod, None, DYNAMIC) is QueueingHint.QUEUE
    assert hints.class_changed(pod, DYNAMIC, limited) is QueueingHint.QUEUE
    assert hints.class_changed(pod, DYNAMIC, DYNAMIC) is QueueingHint.SKIP
    plain, migrated = make_csi_node("a"), changed(make_csi_node("a"), annotations={MIGRATED_PLUGINS: "x"})
    assert hints.migration_changed(pod, None, plain) is QueueingHint.QUEUE
    assert hints.migration_changed(pod, plain, migrated) is QueueingHint.QUEUE
    assert hints.migration_changed(pod, plain, make_csi_node("a", {"d": 2})) is QueueingHint.SKIP
    assert hints.capacity_ignored(pod, driver(), driver(tracked=False)) is QueueingHint.QUEUE
    assert hints.capacity_ignored(pod, driver(tracked=False), driver()) is QueueingHint.SKIP
    other = driver(name="other")
    assert hints.capacity_ignored(pod, other, driver(tracked=False, name="other")) is QueueingHint.SKIP
    small, large = capacity("x", "ssd", "1Gi"), capacity("x", "ssd", "2Gi")
    assert hints.limit_grew(pod, None, small) is QueueingHint.QUEUE
    assert hints.limit_grew(pod, small, large) is QueueingHint.QUEUE
    assert hints.limit_grew(pod, large, small) is QueueingHint.SKIP
    assert own_claim(pod, None, make_pvc("p-data")) is QueueingHint.QUEUE
    assert own_claim(pod, None, make_pvc("q-data")) is QueueingHint.SKIP
