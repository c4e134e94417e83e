"""VolumeRestrictions: clashing disks, claims for one pod only, dry runs, hints; both forms against a loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.meta import key_of
from moorage.api.pod import Volume
from moorage.api.storage import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
)
from moorage.framework.events import QueueingHint
from moorage.plugins import volume_restrictions
from moorage.plugins import volumes as volume_helpers
from moorage.testing.builders import make_node, make_pod
from moorage.testing.volumes import make_pvc
from tests.plugins.volume_world import ask, ask_in, make_world

DISK = ("Unschedulable", ("node(s) had no available disk",))
SINGLE = (
    "Unschedulable",
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod",
    ),
)
PLUGIN = "VolumeRestrictions"


def gce(name="disk", read_only=False) -> Any:
    return Volume(gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name=name, read_only=read_only))


def ebs(name="disk", read_only=False) -> Any:
    source = AWSElasticBlockStoreVolumeSource(volume_id=name, read_only=read_only)
    return Volume(aws_elastic_block_store=source)


def iscsi(name="disk", read_only=False) -> Any:
    return Volume(iscsi=ISCSIVolumeSource(iqn=name, read_only=read_only))


def rbd(name="disk", read_only=False, monitors=("m1", "m2"), pool="rbd") -> Any:
    source = RBDVolumeSource(monitors=monitors, image=name, pool=pool, read_only=read_only)
    return Volume(rbd=source)


def one_pod_claim(name="claim") -> Any:
    return make_pvc(name, access_modes=["ReadWriteOncePod"])


@pytest.mark.parametrize(
    ("mine", "theirs", "clash"),
    [
        pytest.param(gce(), gce(), True, id="gce written by both"),
        pytest.param(gce(read_only=True), gce(), True, id="gce read by one"),
        pytest.param(gce(read_only=True), gce(read_only=True), False, id="gce read by both"),
        pytest.param(gce("a"), gce("b"), False, id="gce, another disk"),
        pytest.param(ebs(), ebs(), True, id="ebs"),
        pytest.param(ebs(read_only=True), ebs(read_only=True), True, id="ebs read by both clashes too"),
        pytest.param(iscsi(), iscsi(read_only=True), True, id="iscsi written by one"),
        pytest.param(iscsi(read_only=True), iscsi(read_only=True), False, id="iscsi read by both"),
        pytest.param(rbd(), rbd(monitors=("m2", "m3")), True, id="rbd with a common monitor"),
        pytest.param(rbd(), rbd(monitors=("m3",)), False, id="rbd of another cluster"),
        pytest.param(rbd(), rbd(pool="other"), False, id="rbd of another pool"),
        pytest.param(rbd(read_only=True), rbd(read_only=True), False, id="rbd read by both"),
        pytest.param(gce(), iscsi(), False, id="different kinds of one name"),
    ],
)
def test_disks_clash(mine, theirs, clash):
    other = make_pod("other", namespace="elsewhere", node="a", volumes=[theirs])
    asked = ask(PLUGIN, make_pod(volumes=[mine]), make_node("a"), make_node("b"), other)
    assert asked.together() == ({"a": DISK} if clash else {})
    assert asked.one_by_one() == asked.together()


def test_pod_without_such_volumes_is_skipped():
    assert ask(PLUGIN, make_pod(), make_node("a")).skipped
    assert ask(PLUGIN, make_pod(volumes=[Volume(name="scratch")]), make_node("a")).skipped
    user = make_pod("user", node="a", claims=["claim"])
    assert ask(PLUGIN, make_pod(claims=["claim"]), make_node("a"), user, make_pvc()).skipped


def test_missing_claim_is_refused_at_once():
    asked = ask(PLUGIN, make_pod(claims=["claim"], volumes=[gce()]), make_node("a"))
    assert asked.pre.code.label == "UnschedulableAndUnresolvable"
    assert asked.pre.reasons == ('persistentvolumeclaim "claim" not found',)


def test_claim_for_one_pod_is_refused_on_all_nodes_while_another_pod_uses_it():
    user = make_pod("user", node="a", claims=["claim"])
    nodes = [make_node("a"), make_node("b")]
    asked = ask(PLUGIN, make_pod(claims=["claim"]), *nodes, user, one_pod_claim())
    assert asked.together() == asked.one_by_one() == {"a": SINGLE, "b": SINGLE}
    stranger = make_pod("user", namespace="other", node="a", claims=["claim"])
    assert ask(PLUGIN, make_pod(claims=["claim"]), *nodes, stranger, one_pod_claim()).skipped


def test_a_user_on_a_node_that_is_gone_does_not_count():
    user = make_pod("user", node="gone", claims=["claim"])
    assert ask(PLUGIN, make_pod(claims=["claim"]), make_node("a"), user, one_pod_claim()).skipped


def test_the_disk_is_reported_before_the_claim():
    user = make_pod("user", node="a", claims=["claim"], volumes=[gce()])
    pod = make_pod(claims=["claim"], volumes=[gce()])
    asked = ask(PLUGIN, pod, make_node("a"), make_node("b"), user, one_pod_claim())
    assert asked.together() == asked.one_by_one() == {"a": DISK, "b": SINGLE}


def test_dry_run_frees_a_claim_and_leaves_the_attempt_alone():
    user = make_pod("user", node="a", claims=["claim", "second"])
    world = make_world(make_node("a"), user, one_pod_claim(), one_pod_claim("second"))
    pod = make_pod("incoming", claims=["claim", "second"])
    asked = ask_in(world, PLUGIN, pod)
    view = asked.nodes[0]
    what_if = asked.state.clone()
    assert asked.plugin.concerns(what_if, pod, user)
    assert not asked.plugin.concerns(what_if, pod, make_pod("bystander", claims=["third"]))
    asked.plugin.remove_pod(what_if, pod, user, view)
    assert asked.plugin.filter(what_if, pod, view) is None
    assert asked.one_by_one() == {"a": SINGLE}
    asked.plugin.add_pod(what_if, pod, user, view)
    assert asked.plugin.filter(what_if, pod, view).reasons == SINGLE[1]


def test_dry_run_frees_a_disk():
    user = make_pod("user", node="a", volumes=[ebs()])
    world = make_world(make_node("a"), make_node("b"), user)
    profile = next(iter(world.engine.profiles.values()))
    session = profile.plugins[PLUGIN].handle.dry_run()
    pod = make_pod("incoming", volumes=[ebs()])
    assert session.trial(pod).filter("a").reasons == DISK[1]
    session.remove_pod("a", user)
    session.add_pod("b", make_pod("moved", volumes=[ebs()]))
    statuses = session.trial(pod).filter_all()
    assert statuses.get("a").is_success
    assert statuses.get("b").reasons == DISK[1]


def test_vector_form_in_a_dry_run_reads_the_rows():
    user = make_pod("user", node="a", volumes=[ebs()])
    asked = ask(PLUGIN, make_pod(volumes=[ebs()]), make_node("a"), make_node("b"), user)
    services = asked.plugin.handle._services
    row = services.dry_run_rows(["a"])
    row.remove_pod(0, user)
    assert asked.together(row.view(0).alone()) == {}
    assert asked.together() == {"a": DISK}


VOLUMES = st.lists(
    st.builds(
        lambda make, name, read_only: make(name, read_only),
        st.sampled_from([gce, ebs, iscsi, rbd]),
        st.sampled_from(["x", "y"]),
        st.booleans(),
    ),
    max_size=2,
)
PODS = st.lists(st.tuples(VOLUMES, st.sampled_from([(), ("one",), ("many",), ("one", "many")])), max_size=4)


def plain(pod_volumes, single_in_use, others) -> Any:
    """One node's verdict by plain loops."""
    for mine in pod_volumes:
        for volumes in others:
            if any(share_badly(mine, theirs) for theirs in volumes):
                return DISK
    return SINGLE if single_in_use else None


def share_badly(mine, theirs) -> Any:
    for field, identity in (
        ("gce_persistent_disk", "pd_name"),
        ("aws_elastic_block_store", "volume_id"),
        ("iscsi", "iqn"),
        ("rbd", "image"),
    ):
        a, b = getattr(mine, field), getattr(theirs, field)
        if a is not None and b is not None and getattr(a, identity) == getattr(b, identity):
            return field == "aws_elastic_block_store" or not (a.read_only and b.read_only)
    return False


@given(incoming=st.tuples(VOLUMES, st.sampled_from([(), ("one",)])), running=PODS, where=st.randoms())
def test_both_forms_agree_with_the_rule(incoming, running, where):
    nodes = [make_node(name) for name in "abc"]
    placed = [
        make_pod(f"p{number}", node=where.choice("abc"), volumes=volumes, claims=claims)
        for number, (volumes, claims) in enumerate(running)
    ]
    pod = make_pod("incoming", volumes=incoming[0], claims=incoming[1])
    asked = ask(PLUGIN, pod, *nodes, *placed, one_pod_claim("one"), make_pvc("many"))
    used = bool(incoming[1]) and any("one" in claims for _, claims in running)
    expected = {}
    for node in nodes:
        others = [other.spec.volumes for other in placed if other.spec.node_name == node.name]
        verdict = plain(incoming[0], used, others)
        if verdict is not None:
            expected[node.name] = verdict
    assert asked.together() == asked.one_by_one() == expected


@pytest.mark.parametrize(
    ("gone", "hint"),
    [
        (make_pod("x", node="a", volumes=[gce()]), QueueingHint.QUEUE),
        (make_pod("x", node="a", claims=["claim"]), QueueingHint.QUEUE),
        (make_pod("x", node="a", claims=["other"], volumes=[gce("b")]), QueueingHint.SKIP),
        (make_pod("x", namespace="other", node="a", volumes=[gce()]), QueueingHint.SKIP),
    ],
)
def test_a_pod_that_went_wakes_those_it_stood_in_the_way_of(gone, hint):
    pod = make_pod(claims=["claim"], volumes=[gce()])
    assert volume_restrictions.released(pod, gone, None) is hint


def test_the_volume_plugins_read_the_volumes_of_a_pod_once(monkeypatch):
    read: list[object] = []
    signature = volume_helpers.signature

    def counting(listed):
        read.append(listed)
        return key_of(listed)

    monkeypatch.setattr(volume_helpers, "key_of", counting)
    disk = Volume(name="v", gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name="d"))
    pod, other = (make_pod(name, volumes=[disk]) for name in ("p", "q"))
    assert signature(pod) == signature(pod) == signature(other)
    assert len(read) == 2
    assert signature(make_pod("plain")) == ()
