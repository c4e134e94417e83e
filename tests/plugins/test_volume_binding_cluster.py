"""VolumeBinding in a running cluster: booked, written, waited for; conflicts, failures, crashes, wake-ups.

The controllers that bind and provision volumes are played by `Controller`, one step at a time.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from moorage.plugins.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing.builders import make_node, make_pod
from moorage.testing.volumes import make_pv, make_pvc, make_storage_class

HOST = "kubernetes.io/hostname"
WAITING = make_storage_class("wait", provisioner="kubernetes.io/no-provisioner", wait=True)
DYNAMIC = make_storage_class("dynamic", provisioner="driver", wait=True)
NODES = (make_node("a"), make_node("b"))


class Controller:
    """Binds volumes to the claims in them, and makes volumes for claims with a selected node."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def volume(self, name) -> Any:
        return self.cluster.store.get(PERSISTENT_VOLUMES, name).typed

    def claim(self, name="claim") -> Any:
        return self.cluster.store.get(PERSISTENT_VOLUME_CLAIMS, name, "default").typed

    def bind(self, volume, claim="claim") -> Any:
        annotations = {"annotations": {BIND_COMPLETED: "yes"}}
        self._patch_claim(claim, {"metadata": annotations, "spec": {"volumeName": volume}})
        self._patch_claim(claim, {"status": {"phase": "Bound"}}, subresource="status")

    def provision(self, node, claim="claim", name="made") -> Any:
        made = make_pv(name, storage_class="dynamic", nodes={HOST: [node]}, claim=self.claim(claim))
        self.cluster.add(made)
        self.bind(name, claim)

    def give_up(self, claim="claim") -> Any:
        """A provisioner that fails takes the choice of the node back."""
        self._patch_claim(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})

    def _patch_claim(self, name, patch, **options) -> Any:
        self.cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, patch, "default", **options)


@pytest.fixture
def start(moorage_cluster) -> Any:
    def make(*objects, **options) -> Any:
        cluster = moorage_cluster(**options)
        cluster.add(*NODES, WAITING, DYNAMIC, *objects)
        cluster.settle()
        return cluster, Controller(cluster)

    return make


def static(name="v", node="b", size="1Gi") -> Any:
    return make_pv(name, storage_class="wait", nodes={HOST: [node]}, size=size)


def waiting(name="claim", **options) -> Any:
    return make_pvc(name, storage_class="wait", **options)


def shown(cluster, resource, key) -> Any:
    """What plugins see: the stored object, or what is assumed on top of it."""
    return cluster.scheduler.engine.services.cluster.assume_cache(resource).get(key)


def writes(cluster, resource=None) -> Any:
    return [c for c in cluster.faults.calls_of("patch", resource) if c.subresource == ""]


def test_static_volume_is_bound_before_the_pod(start):
    cluster, controller = start(static(), waiting())
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(3)
    volume = controller.volume("v")
    assert (volume.spec.claim_ref.name, volume.spec.claim_ref.uid) == ("claim", controller.claim().uid)
    assert volume.annotations[BOUND_BY_CONTROLLER] == "yes"
    assert cluster.node_of("p") == ""
    assert cluster.pod("p").status.nominated_node_name == "b"
    controller.bind("v")
    cluster.settle(2)
    assert cluster.node_of("p") == "b"
    cluster.validate()


def test_volume_is_provisioned_for_the_chosen_node(start):
    cluster, controller = start(make_pvc(storage_class="dynamic"))
    cluster.add(make_pod("p", claims=["claim"], node_selector={HOST: "b"}))
    cluster.settle(3)
    assert controller.claim().annotations[SELECTED_NODE] == "b"
    assert cluster.node_of("p") == ""
    controller.provision("b")
    cluster.settle(2)
    assert cluster.node_of("p") == "b"


def test_bound_claims_cost_no_write(start):
    claim = make_pvc(volume="v")
    cluster, _ = start(claim, make_pv("v", claim=claim, nodes={HOST: ["b"]}))
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle()
    assert cluster.node_of("p") == "b"
    assert writes(cluster, PERSISTENT_VOLUMES) == writes(cluster, PERSISTENT_VOLUME_CLAIMS) == []


def test_two_pods_do_not_book_one_volume(start):
    cluster, controller = start(static("v1"), static("v2"), waiting("one"), waiting("two"))
    cluster.add(make_pod("p1", claims=["one"]), make_pod("p2", claims=["two"]))
    cluster.settle(2)
    taken = {controller.volume(name).spec.claim_ref.name: name for name in ("v1", "v2")}
    assert set(taken) == {"one", "two"}
    for claim, volume in taken.items():
        controller.bind(volume, claim)
    cluster.settle(2)
    assert cluster.bound() == {"default/p1": "b", "default/p2": "b"}


def test_conflict_on_write_rolls_everything_back_and_is_tried_again(start):
    """B24: the second write fails; what was booked is free, and the next attempt goes on from the first."""
    cluster, controller = start(static(), waiting(), make_pvc("made", storage_class="dynamic"))
    fault = cluster.faults.add(Fault(faults.conflict(), verb="patch", resource=PERSISTENT_VOLUME_CLAIMS, times=1))
    cluster.add(make_pod("p", claims=["claim", "made"]))
    cluster.settle(0.5)
    assert fault.hits == 1
    assert SELECTED_NODE not in shown(cluster, PERSISTENT_VOLUME_CLAIMS, "default/made").annotations
    assert [e.reason for e in cluster.events("p")] == ["FailedScheduling"]
    cluster.settle(5)
    assert controller.claim("made").annotations[SELECTED_NODE] == "b"
    controller.bind("v")
    controller.provision("b", "made", "new")
    cluster.settle(3)
    assert cluster.node_of("p") == "b"
    cluster.validate()


def test_a_volume_that_another_claim_took_meanwhile_is_not_taken_twice(start):
    """The write is refused because the volume is not the version that was judged."""
    cluster, controller = start(static("v1"), waiting(), waiting("rival"))
    cluster.faults.add(Fault(faults.delay(1.0), verb="patch", resource=PERSISTENT_VOLUMES, times=1))
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(0.2)
    rival = controller.claim("rival")
    reference = {"name": "rival", "namespace": "default", "uid": rival.uid}
    patch = {"spec": {"claimRef": reference}, "metadata": {"annotations": {"by": "rival"}}}
    cluster.patch(PERSISTENT_VOLUMES, "v1", patch)
    cluster.settle(30)
    assert controller.volume("v1").spec.claim_ref.name == "rival"
    assert cluster.node_of("p") == ""
    cluster.add(static("v2", node="a"))
    cluster.until(lambda: controller.volume("v2").spec.claim_ref is not None, 30)
    controller.bind("v2")
    cluster.settle(3)
    assert cluster.node_of("p") == "a"


def test_lost_answer_of_a_write_converges(start):
    cluster, controller = start(static(), waiting())
    cluster.faults.add(Fault(faults.lost_answer(), verb="patch", resource=PERSISTENT_VOLUMES, times=1))
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(10)
    assert controller.volume("v").spec.claim_ref.uid == controller.claim().uid
    controller.bind("v")
    cluster.settle(20)
    assert cluster.node_of("p") == "b"


@pytest.mark.parametrize("wait", [0.05, 0.5, 2.5])
def test_crash_between_booking_and_bind_converges(start, wait):
    """C12: whatever was written is found again; no volume and no claim is lost."""
    cluster, controller = start(static(), waiting(), make_pvc("made", storage_class="dynamic"))
    cluster.add(make_pod("p", claims=["claim", "made"]))
    cluster.settle(wait)
    cluster.restart()
    cluster.until(lambda: SELECTED_NODE in controller.claim("made").annotations, 30)
    controller.bind("v")
    controller.provision("b", "made", "new")
    cluster.settle(30)
    assert cluster.node_of("p") == "b"
    cluster.validate()


def test_failed_provisioning_sends_the_pod_elsewhere(start):
    cluster, controller = start(make_pvc(storage_class="dynamic"))
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(3)
    first = controller.claim().annotations[SELECTED_NODE]
    cluster.cordon(first)
    controller.give_up()
    cluster.settle(1.5)
    notes = [e.note for e in cluster.events("p", "FailedScheduling")]
    assert notes == ['running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "claim"']
    other = "b" if first == "a" else "a"
    cluster.until(lambda: controller.claim().annotations.get(SELECTED_NODE) == other, 30)
    controller.provision(other)
    cluster.settle(3)
    assert cluster.node_of("p") == other


TIMEOUT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 5}
"""


def test_binding_that_takes_too_long_is_given_up(start):
    cluster, controller = start(static(), waiting(), config=TIMEOUT)
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(5.5)
    notes = [e.note for e in cluster.events("p", "FailedScheduling")]
    assert notes == ['running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded']
    controller.bind("v")
    cluster.settle(20)
    assert cluster.node_of("p") == "b"


def test_deleting_the_pod_ends_the_wait_and_frees_the_booking(start):
    cluster, _ = start(make_pvc(storage_class="dynamic"))
    cluster.faults.add(Fault(faults.delay(2.0), verb="patch", resource=PERSISTENT_VOLUME_CLAIMS))
    pod = make_pod("p", claims=["claim"])
    cluster.add(pod)
    cluster.settle(0.5)
    assert SELECTED_NODE in shown(cluster, PERSISTENT_VOLUME_CLAIMS, "default/claim").annotations
    cluster.delete(pod)
    cluster.settle(10)
    assert cluster.bound() == {}
    assert [cached.pod.key for cached in cluster.scheduler.engine.cache.assumed()] == []
    cluster.validate()


def test_pod_is_refused_and_woken_by_its_claim(start):
    """D17: nothing but the claim itself wakes the pod, and that at once."""
    cluster, _ = start(flush_after=None)
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(2)
    message = cluster.events("p", "FailedScheduling")[-1].note
    assert message.startswith('0/2 nodes are available: persistentvolumeclaim "claim" not found.')
    cluster.add(make_pvc("bystander"))
    cluster.settle(60)
    assert len(cluster.events("p", "FailedScheduling")) == 1
    claim = make_pvc(volume="v")
    cluster.add(make_pv("v", claim=claim), claim)
    cluster.settle(15)
    assert cluster.node_of("p") != ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([make_pvc(volume="v")], [make_pv("v")], id="volume of a bound claim appears"),
        pytest.param(
            [make_pvc(storage_class="late")],
            [make_storage_class("late", provisioner="driver", wait=True)],
            id="class appears",
        ),
        pytest.param([waiting()], [static()], id="volume to bind appears"),
        pytest.param(
            [waiting(), make_pv("v", storage_class="wait", nodes={HOST: ["c"]})],
            [make_node("c")],
            id="node with the volume appears",
        ),
    ],
)
def test_what_was_missing_wakes_the_pod(start, before, after):
    cluster, controller = start(*before, flush_after=None)
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(30)
    assert cluster.node_of("p") == ""
    assert cluster.events("p", "FailedScheduling")
    cluster.add(*after)
    cluster.settle(15)
    if not controller.claim().spec.volume_name:
        if SELECTED_NODE in controller.claim().annotations:
            controller.provision(controller.claim().annotations[SELECTED_NODE], name="made")
        else:
            controller.bind("v")
        cluster.settle(3)
    assert cluster.node_of("p") != ""


def test_unbound_immediate_claim_tells_so_and_waits_for_its_binding(start):
    cluster, controller = start(make_storage_class(), make_pvc(storage_class="standard"), flush_after=None)
    cluster.add(make_pod("p", claims=["claim"]))
    cluster.settle(2)
    message = cluster.events("p", "FailedScheduling")[-1].note
    assert message.startswith("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    cluster.add(make_pv("v", storage_class="standard", claim=controller.claim()))
    controller.bind("v")
    cluster.settle(15)
    assert cluster.node_of("p") != ""


def test_preemption_frees_a_claim_for_one_pod(start):
    """ReadWriteOncePod: the user of the claim is the victim, and only its node helps."""
    claim = make_pvc(volume="v", access_modes=["ReadWriteOncePod"])
    cluster, _ = start(claim, make_pv("v", claim=claim))
    cluster.add(make_pod("user", claims=["claim"], priority=1, node_selector={HOST: "b"}))
    cluster.add(make_pod("bystander", priority=1, node_selector={HOST: "a"}))
    cluster.settle()
    cluster.add(make_pod("vip", claims=["claim"], priority=10))
    cluster.settle(2)
    assert cluster.pod("vip").status.nominated_node_name == "b"
    assert [pod.name for pod in cluster.pods() if pod.is_terminating] == ["user"]
    cluster.run(cluster.client.delete(PODS, "user", namespace="default", grace_period=0))
    cluster.settle(15)
    assert cluster.node_of("vip") != ""


def test_a_claim_for_one_pod_wakes_its_next_user_when_it_is_free(start):
    claim = make_pvc(volume="v", access_modes=["ReadWriteOncePod"])
    cluster, _ = start(claim, make_pv("v", claim=claim), flush_after=None)
    cluster.add(make_pod("first", claims=["claim"]), make_pod("second", claims=["claim"]))
    cluster.settle(30)
    assert list(cluster.bound()) == ["default/first"]
    cluster.run(cluster.client.delete(PODS, "first", namespace="default", grace_period=0))
    cluster.settle(15)
    assert list(cluster.bound()) == ["default/second"]
