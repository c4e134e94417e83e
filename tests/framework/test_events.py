"""Cluster events: what matches what, and what logs and metrics call them."""

from __future__ import annotations

import pytest

from moorage.framework import ActionType, ClusterEvent, EventResource
from moorage.framework import events as e

ADD, DELETE, UPDATE, ALL = ActionType.ADD, ActionType.DELETE, ActionType.UPDATE, ActionType.ALL
TAINT, LABEL = ActionType.UPDATE_NODE_TAINT, ActionType.UPDATE_NODE_LABEL
CUSTOM = EventResource("foos.v1.example.com")

MATCHES = [
    pytest.param(e.NODE, ADD, e.NODE, ADD, True, id="the same"),
    pytest.param(e.NODE, ADD, e.NODE, DELETE, False, id="another action"),
    pytest.param(e.NODE, ADD | TAINT, e.NODE, TAINT | LABEL, True, id="one action in common"),
    pytest.param(e.NODE, UPDATE, e.NODE, TAINT, True, id="Update covers each kind of update"),
    pytest.param(e.NODE, TAINT, e.NODE, UPDATE, True, id="an unspecific update may be a taint"),
    pytest.param(e.NODE, ADD, e.CSI_NODE, ADD, False, id="another resource"),
    pytest.param(e.POD, DELETE, e.ASSIGNED_POD, DELETE, True, id="Pod covers assigned pods"),
    pytest.param(e.POD, ADD, e.UNSCHEDULED_POD, ADD, True, id="Pod covers unscheduled pods"),
    pytest.param(e.ASSIGNED_POD, ADD, e.UNSCHEDULED_POD, ADD, False, id="assigned is not unscheduled"),
    pytest.param(e.POD, UPDATE, e.TARGET_POD, UPDATE, True, id="Pod covers the pod itself"),
    pytest.param(e.TARGET_POD, UPDATE, e.UNSCHEDULED_POD, UPDATE, False, id="the pod itself is not another one"),
    pytest.param(e.UNSCHEDULED_POD, UPDATE, e.TARGET_POD, UPDATE, True, id="unscheduled covers the pod itself"),
    pytest.param(EventResource("UnschedulablePod"), ADD, e.UNSCHEDULED_POD, ADD, True, id="the name of 1.36"),
    pytest.param(e.ASSIGNED_POD, ADD, e.POD, ADD, False, id="the narrow does not cover the wide"),
    pytest.param(e.WILDCARD, ALL, CUSTOM, DELETE, True, id="the wildcard covers everything"),
    pytest.param(e.WILDCARD, ADD, e.NODE, DELETE, False, id="any resource, but not any action"),
    pytest.param(CUSTOM, UPDATE, CUSTOM, ActionType.UPDATE_OTHER, True, id="custom resources by their name"),
]


@pytest.mark.parametrize(("resource", "action", "incoming", "happened", "expected"), MATCHES)
def test_a_registration_covers_an_event(resource, action, incoming, happened, expected):
    assert ClusterEvent(resource, action).matches(ClusterEvent(incoming, happened)) is expected


LABELS = [
    (e.NODE_ADD, "NodeAdd"),
    (e.ASSIGNED_POD_ADD, "AssignedPodAdd"),
    (e.ASSIGNED_POD_DELETE, "AssignedPodDelete"),
    (e.UNSCHEDULED_POD_ADD, "UnscheduledPodAdd"),
    (ClusterEvent(e.UNSCHEDULED_POD, UPDATE), "UnscheduledPodUpdate"),
    (ClusterEvent(e.UNSCHEDULED_POD, ActionType.UPDATE_OTHER), "UnscheduledPodUpdate"),
    (ClusterEvent(e.NODE, TAINT), "NodeUpdateNodeTaint"),
    (ClusterEvent(e.NODE, LABEL | TAINT), "NodeUpdateNodeLabel|UpdateNodeTaint"),
    (ClusterEvent(e.NODE, ADD | TAINT), "NodeAdd|UpdateNodeTaint"),
    (ClusterEvent(e.STORAGE_CLASS, ALL), "StorageClassAll"),
    (ClusterEvent(CUSTOM, ADD), "foos.v1.example.comAdd"),
    (ClusterEvent(e.WILDCARD, ALL), "*"),
    (e.FORCE_ACTIVATE, "ForceActivate"),
    (e.UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
    (e.BACKOFF_COMPLETE, "BackoffComplete"),
    (e.POP_FROM_BACKOFF, "PopFromBackoffQ"),
    (e.SCHEDULE_ATTEMPT_FAILURE, "ScheduleAttemptFailure"),
]


@pytest.mark.parametrize(("event", "label"), LABELS, ids=[label for _, label in LABELS])
def test_labels(event, label):
    assert event.label == label


@pytest.mark.parametrize(
    ("event", "labels"),
    [
        (ClusterEvent(e.NODE, ActionType.ADD), ["NodeAdd"]),
        (ClusterEvent(e.POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL), ["PodAdd", "PodUpdatePodLabel"]),
        (ClusterEvent(e.NODE, ActionType.DELETE | ActionType.UPDATE), ["NodeDelete", "NodeUpdate"]),
        (ClusterEvent(e.WILDCARD, ActionType.ALL), ["*"]),
        (e.FORCE_ACTIVATE, ["ForceActivate"]),
    ],
)
def test_a_registration_of_several_actions_has_a_label_for_each(event, labels):
    assert event.labels == labels


def test_every_action_has_a_label_of_its_own_except_the_unspecific_update():
    labels = [ClusterEvent(e.NODE, action).label for action in ActionType]
    assert len(set(labels)) == len(labels), labels
    assert int(ALL) == sum(int(action) for action in ActionType)


def test_without_registration_there_are_ten_kinds():
    assert set(map(str, e.WITHOUT_REGISTRATION)) == {
        "Pod", "Node", "PersistentVolume", "PersistentVolumeClaim", "CSINode", "CSIDriver",
        "CSIStorageCapacity", "StorageClass", "ResourceClaim", "DeviceClass",
    }  # fmt: skip
