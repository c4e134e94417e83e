"""NodeVolumeLimits: what counts, and once; attachments, migration, hints; both forms against a loop."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.pod import EphemeralVolumeSource, Volume
from moorage.api.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from moorage.framework.events import QueueingHint
from moorage.plugins import node_volume_limits as limits
from moorage.testing.builders import make_node, make_pod
from moorage.testing.volumes import make_csi_node, make_pv, make_pvc, make_storage_class
from tests.plugins.volume_world import ask, ask_in, make_world

PLUGIN = "NodeVolumeLimits"
FULL = ("Unschedulable", ("node(s) exceed max volume count",))
EBS = "ebs.csi.aws.com"


def bound(number, driver="d", handle=None) -> Any:
    claim = make_pvc(f"claim-{number}", volume=f"volume-{number}")
    volume = make_pv(f"volume-{number}", claim=claim, driver=driver)
    if handle is not None and volume.spec.csi is not None:
        csi = msgspec.structs.replace(volume.spec.csi, volume_handle=handle)
        volume = msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, csi=csi))
    return [claim, volume]


def attachment(name, node, volume, attacher="d") -> Any:
    return VolumeAttachment(
        kind="VolumeAttachment",
        metadata=ObjectMeta(name=name, uid=name),
        spec=VolumeAttachmentSpec(
            attacher=attacher, node_name=node, source=VolumeAttachmentSource(persistent_volume_name=volume)
        ),
    )


def ebs(name) -> Any:
    return Volume(name=name, aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id=name))


def owned_claim(name, owner, **options) -> Any:
    claim = make_pvc(name, **options)
    reference = OwnerReference(kind="Pod", name="incoming", uid=owner, controller=True)
    metadata = msgspec.structs.replace(claim.metadata, owner_references=(reference,))
    return msgspec.structs.replace(claim, metadata=metadata)


def verdict(pod, *objects, limit=1, driver="d") -> Any:
    asked = ask(PLUGIN, pod, make_node("a"), make_csi_node("a", {driver: limit}), *objects)
    assert asked.together() == asked.one_by_one()
    return asked.together()


def test_pods_without_attachable_volumes_are_skipped():
    assert ask(PLUGIN, make_pod(), make_node("a")).skipped
    assert ask(PLUGIN, make_pod(volumes=[Volume(name="scratch")]), make_node("a")).skipped
    assert not ask(PLUGIN, make_pod(volumes=[ebs("v")]), make_node("a")).skipped
    azure = Volume(azure_file=AzureFileVolumeSource(share_name="s"))
    assert not ask(PLUGIN, make_pod(volumes=[azure]), make_node("a")).skipped


def test_missing_claim_is_refused_on_every_node():
    asked = ask(PLUGIN, make_pod(claims=["gone"]), make_node("a"), make_node("b"), make_csi_node("a"))
    reason = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    expected = dict.fromkeys("ab", ("UnschedulableAndUnresolvable", (reason,)))
    assert asked.together() == asked.one_by_one() == expected


RUNNING = make_pod("running", node="a", claims=["claim-1"])


@pytest.mark.parametrize(
    ("pod", "objects", "limit", "full"),
    [
        pytest.param(make_pod(claims=["claim-1"]), bound(1), 1, False, id="room for one"),
        pytest.param(make_pod(claims=["claim-1"]), bound(1), 0, True, id="no room at all"),
        pytest.param(make_pod(claims=["claim-2"]), [*bound(1), *bound(2), RUNNING], 1, True, id="taken by another"),
        pytest.param(make_pod(claims=["claim-1"]), [*bound(1), RUNNING], 1, False, id="shared counts once"),
        pytest.param(
            make_pod(claims=["claim-2"]),
            [*bound(1, handle="h"), *bound(2, handle="h"), RUNNING],
            1,
            False,
            id="one handle behind two volumes counts once",
        ),
        pytest.param(make_pod(claims=["claim-2"]), [*bound(1, "other"), *bound(2), RUNNING], 1, False, id="per driver"),
        pytest.param(make_pod(claims=["claim-1", "claim-2"]), [*bound(1), *bound(2)], 1, True, id="two at once"),
        pytest.param(make_pod(claims=["claim-1"]), bound(1, "other"), 0, False, id="driver without a limit"),
        pytest.param(
            make_pod(claims=["claim-2"]),
            [*bound(2), make_pod("running", node="a", claims=["gone"])],
            1,
            False,
            id="missing claim of a running pod does not count",
        ),
    ],
)
def test_volumes_are_counted(pod, objects, limit, full):
    assert verdict(pod, *objects, limit=limit) == ({"a": FULL} if full else {})


def test_no_limit_without_a_csi_node_or_count():
    pod = make_pod(claims=["claim-1"])
    assert ask(PLUGIN, pod, make_node("a"), *bound(1)).together() == {}
    assert verdict(pod, *bound(1), limit=None) == {}


def test_attachments_count_unless_a_pod_of_the_node_uses_the_volume():
    pod = make_pod(claims=["claim-2"])
    objects = [*bound(1), *bound(2)]
    assert verdict(pod, *objects, attachment("x", "a", "volume-1")) == {"a": FULL}
    assert verdict(pod, *objects, attachment("x", "b", "volume-1")) == {}
    assert verdict(pod, *objects, attachment("x", "a", "gone")) == {}
    assert verdict(pod, *objects, attachment("x", "a", "volume-1", attacher="other")) == {}
    assert verdict(pod, *objects, attachment("x", "a", "volume-1"), RUNNING, limit=2) == {}


def test_attachment_of_the_pods_own_volume_counts_beside_it():
    """As upstream: until a pod on the node uses it, an attached volume and a new one are two."""
    assert verdict(make_pod(claims=["claim-1"]), *bound(1), attachment("x", "a", "volume-1")) == {"a": FULL}


def test_unbound_claim_counts_for_the_driver_of_its_class():
    objects = [make_storage_class(provisioner="d", wait=True), make_pvc(storage_class="standard")]
    pod = make_pod(claims=["claim"])
    assert verdict(pod, *objects, limit=0) == {"a": FULL}
    assert verdict(pod, *objects, limit=1) == {}
    assert verdict(pod, make_pvc(storage_class="unknown"), limit=0) == {}
    running = make_pod("running", node="a", claims=["claim"])
    assert verdict(pod, *objects, running, limit=1) == {}
    lost = [make_pvc(storage_class="standard", volume="gone"), objects[0]]
    assert verdict(pod, *lost, limit=0) == {"a": FULL}


def test_in_tree_volumes_count_for_their_driver_where_there_is_a_csi_node():
    assert verdict(make_pod(volumes=[ebs("v1")]), limit=0, driver=EBS) == {"a": FULL}
    running = make_pod("running", node="a", volumes=[ebs("v1")])
    assert verdict(make_pod(volumes=[ebs("v1")]), running, limit=1, driver=EBS) == {}
    assert verdict(make_pod(volumes=[ebs("v2")]), running, limit=1, driver=EBS) == {"a": FULL}
    assert ask(PLUGIN, make_pod(volumes=[ebs("v1")]), make_node("a")).together() == {}
    provisioned = make_storage_class(provisioner="kubernetes.io/aws-ebs", wait=True)
    claim = make_pvc(storage_class="standard")
    assert verdict(make_pod(claims=["claim"]), provisioned, claim, limit=0, driver=EBS) == {"a": FULL}
    pv = make_pv("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="vol-1"))
    assert verdict(make_pod(claims=["claim"]), pv, make_pvc(volume="v"), limit=0, driver=EBS) == {"a": FULL}


def test_volume_that_cannot_be_translated_fails_the_attempt_where_it_would_count():
    pod = make_pod(volumes=[ebs("aws://zone/disk")])
    asked = ask(PLUGIN, pod, make_node("a"), make_csi_node("a", {EBS: 1}))
    code, reasons = asked.together()[""]
    assert code == "Error"
    assert "converting volume(aws://zone/disk) from inline to csi" in reasons[0]
    assert ask(PLUGIN, pod, make_node("a")).together() == {}


def test_ephemeral_volumes_must_belong_to_the_pod():
    ephemeral = Volume(name="data", ephemeral=EphemeralVolumeSource())
    pod = make_pod("incoming", volumes=[ephemeral], uid="me")
    storage = make_storage_class(provisioner="d", wait=True)
    mine = owned_claim("incoming-data", "me", storage_class="standard")
    assert verdict(pod, storage, mine, limit=0) == {"a": FULL}
    assert verdict(pod, storage, mine, limit=1) == {}
    foreign = owned_claim("incoming-data", "you", storage_class="standard")
    asked = ask(PLUGIN, pod, make_node("a"), make_csi_node("a", {"d": 1}), storage, foreign)
    assert asked.together()[""][0] == "Error"
    assert (
        asked.one_by_one()["a"][1][0]
        == "PVC default/incoming-data was not created for pod default/incoming (pod is not owner)"
    )


def test_broken_volume_of_a_running_pod_fails_the_attempt():
    running = make_pod("running", node="a", uid="r", volumes=[Volume(name="x", ephemeral=EphemeralVolumeSource())])
    objects = [running, make_pvc("running-x"), *bound(1)]
    asked = ask(PLUGIN, make_pod(claims=["claim-1"]), make_node("a"), make_csi_node("a", {"d": 9}), *objects)
    assert asked.together()[""][0] == "Error"


def test_dry_run_counts_the_pods_that_stay():
    world = make_world(make_node("a"), make_csi_node("a", {"d": 1}), *bound(1), *bound(2), RUNNING)
    asked = ask_in(world, PLUGIN, make_pod("incoming", claims=["claim-2"]))
    row = asked.plugin.handle._services.dry_run_rows(["a"])
    row.remove_pod(0, RUNNING)
    assert asked.plugin.filter(asked.state, asked.pod, row.view(0)) is None
    assert asked.together(row.view(0).alone()) == {}
    assert asked.together() == asked.one_by_one() == {"a": FULL}


CLAIMS = st.lists(st.integers(0, 5), max_size=3, unique=True)


@given(
    incoming=st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True),
    running=st.lists(st.tuples(st.sampled_from("ab"), CLAIMS), max_size=4),
    attached=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=3),
    counts=st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))),
)
def test_both_forms_agree_with_the_rule(incoming, running, attached, counts):
    """Claims 0-3 are bound to volumes of driver `d` or `e`, two of them to one handle; 4 is unbound, 5 has no
    class."""
    handles = {0: ("d", "h0"), 1: ("d", "h1"), 2: ("e", "h2"), 3: ("d", "h1"), 4: ("d", "new 4")}
    objects = [obj for n in range(4) for obj in bound(n, handles[n][0], handles[n][1])]
    objects += [make_storage_class(provisioner="d", wait=True)]
    objects += [make_pvc("claim-4", storage_class="standard"), make_pvc("claim-5")]
    pods = [
        make_pod(f"p{n}", node=node, claims=[f"claim-{c}" for c in claims]) for n, (node, claims) in enumerate(running)
    ]
    links = [
        attachment(f"x{n}", node, f"volume-{v}", handles.get(v, ("d",))[0]) for n, (node, v) in enumerate(attached)
    ]
    nodes = [make_node("a"), make_node("b"), make_csi_node("a", {"d": counts[0], "e": counts[1]})]
    pod = make_pod("incoming", claims=[f"claim-{c}" for c in incoming])
    asked = ask(PLUGIN, pod, *nodes, *objects, *pods, *links)
    used = {handles[c] for node, claims in running if node == "a" for c in claims if c in handles}
    new = {handles[c] for c in incoming if c in handles} - used
    held = used | {handles[v] for node, v in attached if node == "a" and v < 4}
    full = any(
        limit is not None
        and any(driver == name for driver, _ in new)
        and sum(driver == name for driver, _ in held) + sum(driver == name for driver, _ in new) > limit
        for name, limit in zip("de", counts, strict=True)
    )
    assert asked.together() == asked.one_by_one() == ({"a": FULL} if full else {})


def test_hints():
    pod = make_pod(claims=["claim"])
    small, large = make_csi_node("a", {"d": 1}), make_csi_node("a", {"d": 2})
    assert limits.limit_grew(pod, small, large) is QueueingHint.QUEUE
    assert limits.limit_grew(pod, large, small) is QueueingHint.SKIP
    assert limits.limit_grew(pod, small, make_csi_node("a", {"d": 1, "e": 1})) is QueueingHint.QUEUE
    gone = make_pod("x", node="a", claims=["other"])
    assert limits.detached(pod, gone, None) is QueueingHint.QUEUE
    assert limits.detached(pod, make_pod("x", node="a"), None) is QueueingHint.SKIP
    link = attachment("x", "a", "v", EBS)
    assert limits.attachment_gone(pod, link, None) is QueueingHint.QUEUE
    assert limits.attachment_gone(make_pod(volumes=[ebs("v")]), link, None) is QueueingHint.QUEUE
    other = attachment("x", "a", "v", "other")
    assert limits.attachment_gone(make_pod(volumes=[ebs("v")]), other, None) is QueueingHint.SKIP


def test_pods_that_differ_in_claims_or_namespace_do_not_share_hints():
    asked = ask(PLUGIN, make_pod(), make_node("a"))
    sign = asked.plugin.sign
    token = Volume(name="kube-api-access-x7k2p")
    assert sign(make_pod("p", claims=["c"])) == sign(make_pod("q", claims=["c"], volumes=[token]))
    assert sign(make_pod("p", claims=["c"])) != sign(make_pod("p", claims=["d"]))
    assert sign(make_pod("p", claims=["c"])) != sign(make_pod("p", namespace="other", claims=["c"]))
    ephemeral = Volume(name="data", ephemeral=EphemeralVolumeSource())
    assert sign(make_pod("p", volumes=[ephemeral])) != sign(make_pod("q", volumes=[ephemeral]))
    assert sign(make_pod("p")) == sign(make_pod("q", namespace="other", volumes=[token])) == ()
