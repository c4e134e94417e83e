"""VolumeZone: texts, zones of volumes and nodes, what wakes a refused pod; the vector form against a loop."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.node import REGION, ZONE
from moorage.framework.events import QueueingHint
from moorage.plugins import volume_zone
from moorage.plugins.csi_translation import BETA_REGION, BETA_ZONE
from moorage.plugins.volumes import own_named_claim
from moorage.testing.builders import make_node, make_pod
from moorage.testing.volumes import make_pv, make_pvc, make_storage_class
from tests.plugins.volume_world import ask

UNRESOLVABLE = "UnschedulableAndUnresolvable"
REFUSED = (UNRESOLVABLE, ("node(s) had no available volume zone",))


def bound(labels, claim="claim", volume="volume") -> Any:
    pvc = make_pvc(claim, volume=volume)
    return pvc, make_pv(volume, claim=pvc, labels=labels)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "claim" not found', id="claim missing"),
        pytest.param([make_pvc(volume="gone")], 'persistentvolume "gone" not found', id="volume missing"),
        pytest.param(
            [make_pvc(storage_class=None)], "PersistentVolumeClaim had no pv name and storageClass name", id="no class"
        ),
        pytest.param(
            [make_pvc(storage_class="fast")], 'storageclass.storage.k8s.io "fast" not found', id="class missing"
        ),
        pytest.param(
            [make_pvc(storage_class="standard"), make_storage_class()],
            "PersistentVolume had no name",
            id="immediate and unbound",
        ),
        pytest.param(
            [
                make_pvc(storage_class="standard"),
                msgspec.structs.replace(make_storage_class(), volume_binding_mode=None),
            ],
            'VolumeBindingMode not set for StorageClass "standard"',
            id="no binding mode",
        ),
    ],
)
def test_prefilter_refuses_what_is_not_there(objects, reason):
    asked = ask("VolumeZone", make_pod(claims=["claim"]), make_node("n"), *objects)
    assert (asked.pre.code.label, asked.pre.reasons) == (UNRESOLVABLE, (reason,))


def test_claim_without_a_name_is_refused():
    asked = ask("VolumeZone", make_pod(claims=[""]), make_node("n"))
    assert asked.pre.reasons == ("PersistentVolumeClaim had no name",)


@pytest.mark.parametrize(
    ("claims", "objects"),
    [
        pytest.param([], [], id="no claims"),
        pytest.param(["claim"], bound({}), id="volume without zones"),
        pytest.param(["claim"], bound({ZONE: "a__"}), id="label that names an empty zone is ignored"),
        pytest.param(
            ["claim"],
            [make_pvc(storage_class="standard"), make_storage_class(wait=True)],
            id="claim that waits for its consumer",
        ),
    ],
)
def test_nothing_to_check_is_skipped(claims, objects):
    assert ask("VolumeZone", make_pod(claims=claims), make_node("n"), *objects).skipped


@pytest.mark.parametrize(
    ("volume", "node", "passes"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: " a __ b "}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {"disk": "ssd"}, True),
        ({ZONE: "a"}, {REGION: "r"}, False),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
        ({REGION: "r", ZONE: "a"}, {REGION: "r", ZONE: "a"}, True),
        ({REGION: "r", ZONE: "a"}, {REGION: "s", ZONE: "a"}, False),
        ({BETA_REGION: "r"}, {REGION: "r"}, True),
    ],
)
def test_node_must_lie_where_the_volume_is(volume, node, passes):
    asked = ask("VolumeZone", make_pod(claims=["claim"]), make_node("n", labels=node), *bound(volume))
    assert asked.together() == ({} if passes else {"n": REFUSED})
    assert asked.one_by_one() == asked.together()


LABELS = st.dictionaries(
    st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION]), st.sampled_from(["a", "b", "a__b", ""])
)


def plain(volume_labels, node_labels) -> Any:
    """Whether a node passes, as the rule reads."""
    keys = (BETA_ZONE, BETA_REGION, ZONE, REGION)
    if not any(key in node_labels for key in keys):
        return True
    for labels in volume_labels:
        for key in keys:
            if key not in labels or "" in labels[key].split("__"):
                continue
            general = {BETA_ZONE: ZONE, BETA_REGION: REGION}.get(key, key)
            value = node_labels.get(key, node_labels.get(general))
            if value not in labels[key].split("__"):
                return False
    return True


@given(volumes=st.lists(LABELS, min_size=1, max_size=3), nodes=st.lists(LABELS, min_size=1, max_size=5))
def test_vector_form_agrees_with_the_rule(volumes, nodes):
    objects = [
        obj for number, labels in enumerate(volumes) for obj in bound(labels, f"claim-{number}", f"volume-{number}")
    ]
    pod = make_pod(claims=[f"claim-{number}" for number in range(len(volumes))])
    made = [make_node(f"n{number}", labels=labels) for number, labels in enumerate(nodes)]
    expected = {node.name: REFUSED for node, labels in zip(made, nodes, strict=True) if not plain(volumes, labels)}
    assert ask("VolumeZone", pod, *made, *objects).together() == expected


def test_hints():
    pod = make_pod(claims=["claim"])
    waiting, immediate = make_storage_class(wait=True), make_storage_class()
    assert volume_zone.new_waiting_class(pod, None, waiting) is QueueingHint.QUEUE
    assert volume_zone.new_waiting_class(pod, None, immediate) is QueueingHint.SKIP
    here, there = make_pv(labels={ZONE: "a"}), make_pv(labels={ZONE: "b"})
    assert volume_zone.volume_moved(pod, None, here) is QueueingHint.QUEUE
    assert volume_zone.volume_moved(pod, here, there) is QueueingHint.QUEUE
    assert volume_zone.volume_moved(pod, here, here) is QueueingHint.SKIP
    assert own_named_claim(pod, None, make_pvc()) is QueueingHint.QUEUE
    assert own_named_claim(pod, None, make_pvc(namespace="other")) is QueueingHint.SKIP
    assert own_named_claim(pod, None, make_pvc("else")) is QueueingHint.SKIP
