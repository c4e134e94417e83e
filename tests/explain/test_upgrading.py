"""The preview of an upgrade: configuration, removed objects, and pods with the responsible change."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import CSI_DRIVERS, CSI_NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, custom
from moorage.api.versions import upgrade_path
from moorage.app.configuration import configure
from moorage.config import ConfigError, FeatureGates
from moorage.explain.comparing import PodOutcome
from moorage.explain.upgrading import SEVERAL, UpgradePreview, UpgradeStep, changed_pods, going_away, preview
from moorage.explain.versioned import ConfigurationText
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod
from tests.explain.world import cluster

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PATH = upgrade_path("1.37")


def previewed(found: ClusterObjects, *profiles: dict[str, Any], gates: str = "") -> UpgradePreview:
    text = json.dumps({**HEAD, "profiles": list(profiles)} if profiles else HEAD)
    return asyncio.run(preview(found, ConfigurationText.given(text=text, feature_gates=gates), PATH))


def by_pod(found: UpgradePreview) -> dict[str, tuple[str, ...]]:
    return {pod.answer["pod"]: pod.reasons for pod in found.pods}


def test_a_cluster_whose_pods_fit_has_no_change_with_an_effect():
    found = previewed(cluster([make_node("a"), make_node("b")], [make_pod("p"), make_pod("q", node="a")]))
    assert (found.pods, found.judged, found.has_effect) == ((), 2, False)
    assert {change.kind for change in found.configuration} == {"gate", "plugins", "argument"}
    assert [change.path for change in found.configuration if change.kind == "gate"] == [
        "VolumeLimitScaling",
        "StorageCapacityScoring",
    ]


def test_the_text_of_the_message_is_named_as_the_reason():
    found = previewed(cluster([make_node("a", cpu="1")], [make_pod("p", cpu="2")]))
    assert by_pod(found) == {"default/p": ("reports_no_idle_claims",)}
    assert found.reasons == {
        "reports_no_idle_claims": 'The message of an unschedulable pod no longer says "no new claims to deallocate".'
    }
    assert found.has_effect


def test_the_reason_of_a_message_depends_on_what_preemption_did():
    nodes = [make_node("a", cpu="2")]
    pods = [make_pod("small", cpu="2", node="a"), make_pod("p", cpu="2", priority=10), make_pod("huge", cpu="9")]
    assert by_pod(previewed(cluster(nodes, pods))) == {
        "default/p": ("reports_preemption",),
        "default/huge": ("reports_no_idle_claims",),
    }


class Says:
    """A decider with one message for all pods."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def decide(self, pod: Pod) -> PodOutcome:
        return PodOutcome(message=self._message)


@pytest.mark.parametrize(
    ("messages", "reasons"),
    [
        ({"a": "old", "b": "new", "c": "new"}, ("b",)),
        ({"a": "partly", "b": "old", "c": "also partly"}, ("a", "c")),
        ({"a": "old", "b": "old", "c": "old"}, (SEVERAL,)),
    ],
    ids=["one alone", "several parts", "only together"],
)
def test_the_step_that_leads_to_the_new_answer_is_responsible_or_else_all_that_change_it(messages, reasons):
    old, new = FeatureGates.of("1.36"), FeatureGates.of("1.37")
    steps = [UpgradeStep(name, "", FeatureGates(version="1.36", overrides={"field": name})) for name in messages]

    def build(gates: FeatureGates) -> Says:
        if gates.overrides:
            return Says(messages[gates.overrides["field"]])
        return Says("old" if gates is old else "new")

    [changed], without_effect = asyncio.run(changed_pods(build, old, new, steps, [make_pod("p")]))
    assert (changed.reasons, without_effect) == (reasons, 0)


def volumes() -> ClusterObjects:
    """Two nodes, a claim of a driver that must be listed, and only one node that lists it."""
    driver = {"metadata": {"name": "csi.example"}, "spec": {"preventPodSchedulingIfMissing": True}}
    listed = {"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "csi.example", "nodeID": "a"}]}}
    empty = {"metadata": {"name": "b"}, "spec": {"drivers": []}}
    volume = {
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "csi.example", "volumeHandle": "v"},
            "claimRef": {"name": "c", "namespace": "default", "uid": "c"},
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "metadata": {
            "name": "c",
            "namespace": "default",
            "uid": "c",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "v", "storageClassName": ""},
        "status": {"phase": "Bound"},
    }
    others = {
        CSI_DRIVERS: [driver],
        CSI_NODES: [listed, empty],
        PERSISTENT_VOLUMES: [volume],
        PERSISTENT_VOLUME_CLAIMS: [claim],
    }
    read = {kind: [decoding.convert(kind, raw) for raw in listed] for kind, listed in others.items()}
    base = cluster([make_node("a"), make_node("b")], [make_pod("p", claims=["c"])])
    return dataclasses.replace(base, objects={**read, **base.objects})


def test_a_gate_with_another_default_is_named_by_what_it_changes():
    found = previewed(volumes())
    assert by_pod(found) == {"default/p": ("requires_listed_csi_driver",)}
    [pod] = found.pods
    assert pod.answer["lost"] == ["b"]


def test_a_gate_that_the_user_has_set_has_no_other_default():
    found = previewed(volumes(), gates="VolumeLimitScaling=false")
    assert found.pods == ()
    assert "VolumeLimitScaling" not in {change.path for change in found.configuration}


def test_a_plugin_that_is_off_is_not_responsible_and_its_gate_is_not_listed():
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeVolumeLimits"}, {"name": "VolumeBinding"}]}}}
    found = previewed(volumes(), off)
    assert found.pods == ()
    assert [change for change in found.configuration if change.kind in ("gate", "argument")] == []


def test_all_problems_of_the_new_version_are_listed():
    found = previewed(cluster([make_node("a")]), gates="SidecarContainers=true,GangScheduling=false")
    errors = [change for change in found.configuration if change.kind == "error"]
    assert [change.path for change in errors] == ["SidecarContainers", "GangScheduling"]
    assert errors[0].text.startswith("1.37 refuses this: unrecognized feature gate: SidecarContainers")
    assert found.has_effect


def test_what_only_the_older_version_refuses_is_no_error_of_the_upgrade():
    shape = [{"name": "VolumeBinding", "args": {"shape": [{"utilization": 0, "score": 5}]}}]
    found = previewed(cluster([make_node("a")]), {"pluginConfig": shape})
    assert [change.path for change in found.configuration if change.kind == "noLongerError"] == [
        "profiles[0].pluginConfig[0].args.shape"
    ]
    assert not found.has_effect


def test_a_configuration_that_neither_version_accepts_is_an_error():
    with pytest.raises(ConfigError, match="does not extend ScorePlugin"):
        previewed(cluster([make_node("a")]), {"plugins": {"score": {"enabled": [{"name": "NodeName"}]}}})


def test_objects_of_a_removed_api_version_are_listed_and_need_no_plugin():
    gone = custom("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
    assert gone in going_away(PATH)
    group = decoding.convert(gone, {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "team"}})
    base = cluster([make_node("a")], [make_pod("p")])
    found = previewed(dataclasses.replace(base, objects={gone: [group], **base.objects}))
    assert found.to_dict()["removedObjects"] == [
        {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2", "names": ["team/g"]}
    ]
    assert found.has_effect
    assert "removedObjects" not in previewed(base).to_dict()


def test_pods_that_the_scheduler_does_not_try_are_counted_and_skipped():
    pods = [
        make_pod("other", scheduler_name="mine"),
        make_pod("gated", gates=["x"]),
        make_pod("done", phase="Succeeded"),
    ]
    found = previewed(cluster([make_node("a")], pods))
    assert (found.judged, found.skipped) == (0, {"otherScheduler": 1, "gated": 1, "ending": 1})


def test_the_pods_of_all_profiles_are_judged():
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
    pods = [make_pod("p", cpu="9"), make_pod("q", cpu="9", scheduler_name="second")]
    found = previewed(cluster([make_node("a", cpu="1")], pods), *profiles)
    assert by_pod(found).keys() == {"default/p", "default/q"}


def test_a_configuration_that_was_read_for_the_newer_version_can_be_previewed():
    known = configure(json.dumps(HEAD), discover=False, emulated_version="1.37")
    given = ConfigurationText.of(known)
    found = asyncio.run(preview(cluster([make_node("a")], [make_pod("p")]), given, PATH))
    assert {change.kind for change in found.configuration} == {"gate", "plugins", "argument"}


def test_changes_that_one_state_cannot_show_are_listed_apart():
    found = previewed(cluster([make_node("a")]))
    assert "bind_tries" in {change.field for change in found.also_changes}
    assert not {"minor", "reports_preemption"} & {change.field for change in found.also_changes}
