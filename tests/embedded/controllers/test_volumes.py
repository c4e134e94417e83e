"""Claims and volumes: bound, provisioned, waited for, released, protected."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World, template

Raw = dict[str, Any]


def claim(name: str = "data", size: str = "1Gi", storage_class: str | None = "", **spec: Any) -> Raw:
    wanted: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    if storage_class is not None:
        wanted["storageClassName"] = storage_class
    return {"metadata": {"name": name, "namespace": "default"}, "spec": wanted}


def volume(name: str, size: str = "5Gi", **spec: Any) -> Raw:
    given = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}}
    return {"metadata": {"name": name}, "spec": {**given, "persistentVolumeReclaimPolicy": "Retain", **spec}}


def disk(name: str = "fast", mode: str = "Immediate", **more: Any) -> Raw:
    meta = {"name": name, **more.pop("metadata", {})}
    return {"metadata": meta, "provisioner": "example.com/disk", "volumeBindingMode": mode, **more}


def using(*claims: str, name: str = "user") -> Raw:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    made = template(volumes=volumes)
    return {"metadata": {"name": name, "namespace": "default"}, "spec": made["spec"]}


def phase(world: World, resource: Any, name: str) -> str:
    return str(world.get(resource, name, "default" if resource.namespaced else "")["status"]["phase"])


def test_the_smallest_volume_that_fits_is_taken():
    with World() as world:
        for name, size in (("big", "50Gi"), ("small", "500Mi"), ("right", "2Gi")):
            world.create(kinds.VOLUMES, volume(name, size))
        world.create(kinds.CLAIMS, claim())
        world.settle(3)
        found = world.get(kinds.CLAIMS, "data")
        assert found["spec"]["volumeName"] == "right"
        assert found["status"]["phase"] == "Bound"
        assert found["status"]["capacity"] == {"storage": "2Gi"}
        assert phase(world, kinds.VOLUMES, "right") == "Bound"
        assert phase(world, kinds.VOLUMES, "big") == "Available"


def test_a_class_provisions_at_once_and_deletes_with_the_claim():
    with World() as world:
        world.create(kinds.STORAGE_CLASSES, disk(reclaimPolicy="Delete"))
        world.create(kinds.CLAIMS, claim(storage_class="fast"))
        world.settle(3)
        name = world.get(kinds.CLAIMS, "data")["spec"]["volumeName"]
        made = world.get(kinds.VOLUMES, name, "")
        assert made["spec"]["csi"]["driver"] == "example.com/disk"
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        world.delete(kinds.CLAIMS, "data")
        world.settle(5)
        assert world.all(kinds.CLAIMS) == world.all(kinds.VOLUMES) == []


def test_a_retained_volume_stays_released():
    with World() as world:
        world.create(kinds.VOLUMES, volume("keep"))
        world.create(kinds.CLAIMS, claim())
        world.settle(3)
        world.delete(kinds.CLAIMS, "data")
        world.settle(5)
        assert phase(world, kinds.VOLUMES, "keep") == "Released"
        world.create(kinds.CLAIMS, claim("other"))
        world.settle(5)
        assert phase(world, kinds.CLAIMS, "other") == "Pending"


def test_a_class_that_waits_binds_when_the_scheduler_has_chosen():
    with World() as world:
        world.patch(kinds.NODES, "n1", {"metadata": {"labels": {"topology.kubernetes.io/zone": "b"}}})
        world.create(kinds.STORAGE_CLASSES, disk(mode="WaitForFirstConsumer"))
        world.create(kinds.CLAIMS, claim(storage_class="fast"))
        world.settle(20)
        assert phase(world, kinds.CLAIMS, "data") == "Pending"
        assert world.events("WaitForFirstConsumer")
        chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
        world.patch(kinds.CLAIMS, "data", chosen)
        world.settle(3)
        assert phase(world, kinds.CLAIMS, "data") == "Bound"
        (made,) = world.all(kinds.VOLUMES)
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["b"]


def test_a_volume_that_names_the_claim_binds_although_the_class_waits():
    with World() as world:
        world.create(kinds.STORAGE_CLASSES, disk(mode="WaitForFirstConsumer"))
        world.create(kinds.VOLUMES, volume("local", storageClassName="fast"))
        world.create(kinds.CLAIMS, claim(storage_class="fast"))
        world.settle(3)
        assert phase(world, kinds.CLAIMS, "data") == "Pending"
        uid = world.get(kinds.CLAIMS, "data")["metadata"]["uid"]
        ref = {"namespace": "default", "name": "data", "uid": uid}
        world.patch(kinds.VOLUMES, "local", {"spec": {"claimRef": ref}})
        world.settle(3)
        assert world.get(kinds.CLAIMS, "data")["spec"]["volumeName"] == "local"
        assert phase(world, kinds.CLAIMS, "data") == phase(world, kinds.VOLUMES, "local") == "Bound"


def test_the_default_class_is_filled_in():
    default: Raw = {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    with World() as world:
        world.create(kinds.CLAIMS, claim(storage_class=None))
        world.settle(3)
        assert phase(world, kinds.CLAIMS, "data") == "Pending"
        world.create(kinds.STORAGE_CLASSES, disk(**default))
        world.settle(3)
        assert world.get(kinds.CLAIMS, "data")["spec"]["storageClassName"] == "fast"
        assert phase(world, kinds.CLAIMS, "data") == "Bound"


@pytest.mark.parametrize(
    ("wanted", "reason"), [(claim(storage_class="gone"), "ProvisioningFailed"), (claim(), "FailedBinding")]
)
def test_a_claim_that_cannot_be_bound_says_why(wanted: Raw, reason: str):
    with World() as world:
        world.create(kinds.CLAIMS, wanted)
        world.settle(3)
        assert world.events(reason, "data")
        assert phase(world, kinds.CLAIMS, "data") == "Pending"


def test_two_claims_never_get_one_volume():
    with World(seed=3) as world:
        world.create(kinds.VOLUMES, volume("only"))
        for name in ("a", "b", "c"):
            world.create(kinds.CLAIMS, claim(name))
        world.settle(30)
        bound = [c for c in world.all(kinds.CLAIMS) if c["status"]["phase"] == "Bound"]
        assert len(bound) == 1
        assert world.get(kinds.VOLUMES, "only", "")["spec"]["claimRef"]["uid"] == bound[0]["metadata"]["uid"]


def test_a_pod_waits_for_its_claim_and_keeps_it():
    with World() as world:
        world.create(kinds.CLAIMS, claim())
        world.create(kinds.PODS, using("data"))
        world.settle(10)
        pod = world.get(kinds.PODS, "user")
        assert pod["status"]["phase"] == "Pending"
        assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        world.create(kinds.VOLUMES, volume("late"))
        world.settle(10)
        assert phase(world, kinds.PODS, "user") == "Running"
        world.delete(kinds.CLAIMS, "data")
        world.settle(5)
        assert "deletionTimestamp" in world.get(kinds.CLAIMS, "data")["metadata"]
        world.delete(kinds.PODS, "user")
        world.settle(5)
        assert world.find(kinds.CLAIMS, "data") is None


def test_ephemeral_volumes_have_claims_that_go_with_their_pod():
    wanted = claim(storage_class="fast")["spec"]
    with World() as world:
        world.create(kinds.STORAGE_CLASSES, disk(reclaimPolicy="Delete"))
        made = template(volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}])
        world.create(kinds.PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": made["spec"]})
        world.settle(5)
        assert phase(world, kinds.PODS, "p") == "Running"
        assert phase(world, kinds.CLAIMS, "p-tmp") == "Bound"
        world.delete(kinds.PODS, "p")
        world.settle(10)
        assert world.all(kinds.CLAIMS) == world.all(kinds.VOLUMES) == []


def test_a_claim_whose_volume_vanished_is_lost():
    with World() as world:
        world.create(kinds.VOLUMES, volume("v"))
        world.create(kinds.CLAIMS, claim())
        world.settle(3)
        world.delete(kinds.VOLUMES, "v")
        world.settle(5)
        assert phase(world, kinds.VOLUMES, "v") == "Bound"  # protected
        world.patch(kinds.VOLUMES, "v", {"metadata": {"finalizers": None}})
        world.settle(5)
        assert phase(world, kinds.CLAIMS, "data") == "Lost"
