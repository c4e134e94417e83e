"""Updates carry only what changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.node import NodeCondition
from moorage.api.pod import ContainerStatus, PodResourceClaimStatus, PodSchedulingGate, ResourceRequirements
from moorage.api.taints import Taint, Toleration
from moorage.framework.events import ActionType
from moorage.queue.changes import node_changes, pod_changes
from tests.state.objects import make_node, make_pod


def changed(obj: Any, part: str, **fields: Any) -> Any:
    """The object with some fields of its metadata, spec or status replaced."""
    return msgspec.structs.replace(obj, **{part: msgspec.structs.replace(getattr(obj, part), **fields)})


def ready(status: str, heartbeat: str, reason: str = "") -> tuple[NodeCondition, ...]:
    return (NodeCondition(type="Ready", status=status, last_heartbeat_time=heartbeat, reason=reason),)


NODE = changed(make_node("n"), "status", conditions=ready("True", "1"))
CORDONED = changed(NODE, "spec", unschedulable=True)
ALLOCATABLE = NODE.status.allocatable


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(NODE, NODE, 0, id="nothing"),
        pytest.param(
            NODE,
            changed(NODE, "status", conditions=ready("True", "2", "KubeletReady")),
            0,
            id="a heartbeat is no change",
        ),
        pytest.param(NODE, changed(NODE, "metadata", resource_version="2"), 0, id="a version is no change"),
        pytest.param(
            NODE,
            changed(NODE, "status", conditions=ready("False", "1")),
            ActionType.UPDATE_NODE_CONDITION,
            id="a condition flips",
        ),
        pytest.param(
            NODE,
            changed(NODE, "status", allocatable=ALLOCATABLE | {"cpu": "8"}),
            ActionType.UPDATE_NODE_ALLOCATABLE,
            id="more cpu",
        ),
        pytest.param(
            NODE,
            changed(NODE, "status", allocatable=ALLOCATABLE | {"cpu": "4000m"}),
            0,
            id="the same cpu in another spelling",
        ),
        pytest.param(NODE, changed(NODE, "metadata", labels={"a": "b"}), ActionType.UPDATE_NODE_LABEL, id="a label"),
        pytest.param(
            NODE,
            changed(NODE, "metadata", annotations={"a": "b"}),
            ActionType.UPDATE_NODE_ANNOTATION,
            id="an annotation",
        ),
        pytest.param(
            NODE,
            changed(NODE, "spec", taints=(Taint(key="a", effect="NoSchedule"),)),
            ActionType.UPDATE_NODE_TAINT,
            id="a taint",
        ),
        pytest.param(NODE, CORDONED, ActionType.UPDATE_NODE_TAINT, id="a cordon counts as a taint"),
        pytest.param(CORDONED, NODE, ActionType.UPDATE_NODE_TAINT, id="so does an uncordon"),
        pytest.param(
            NODE,
            changed(NODE, "status", declared_features=("A",)),
            ActionType.UPDATE_NODE_DECLARED_FEATURE,
            id="a declared feature",
        ),
        pytest.param(
            NODE,
            changed(changed(NODE, "metadata", labels={"a": "b"}), "spec", unschedulable=True),
            ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT,
            id="two things at once",
        ),
    ],
)
def test_node_changes(old, new, expected):
    assert node_changes(old, new) == expected


POD = make_pod("p", cpu="1", memory="1Gi")
GATED = changed(POD, "spec", scheduling_gates=(PodSchedulingGate(name="a"), PodSchedulingGate(name="b")))
HALF_GATED = changed(POD, "spec", scheduling_gates=(PodSchedulingGate(name="b"),))
IN_USE = changed(
    make_pod("p", cpu="500m", memory="1Gi"),
    "status",
    container_statuses=(ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "1"})),),
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(POD, POD, ActionType.UPDATE_OTHER, id="nothing in particular"),
        pytest.param(
            POD, changed(POD, "metadata", annotations={"a": "b"}), ActionType.UPDATE_OTHER, id="an annotation"
        ),
        pytest.param(POD, changed(POD, "metadata", labels={"a": "b"}), ActionType.UPDATE_POD_LABEL, id="a label"),
        pytest.param(
            POD, make_pod("p", cpu="500m", memory="1Gi"), ActionType.UPDATE_POD_SCALE_DOWN, id="a smaller request"
        ),
        pytest.param(POD, make_pod("p", cpu="1"), ActionType.UPDATE_POD_SCALE_DOWN, id="a request goes away"),
        pytest.param(POD, make_pod("p", cpu="2", memory="1Gi"), ActionType.UPDATE_OTHER, id="a larger request"),
        pytest.param(POD, IN_USE, ActionType.UPDATE_OTHER, id="a smaller request that the kubelet has not carried out"),
        pytest.param(
            POD,
            changed(POD, "spec", tolerations=(Toleration(operator="Exists"),)),
            ActionType.UPDATE_POD_TOLERATION,
            id="a toleration",
        ),
        pytest.param(GATED, HALF_GATED, ActionType.UPDATE_OTHER, id="one of two gates removed"),
        pytest.param(HALF_GATED, POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, id="the last gate removed"),
        pytest.param(
            POD,
            changed(POD, "status", resource_claim_statuses=(PodResourceClaimStatus(name="a"),)),
            ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            id="a generated claim",
        ),
        pytest.param(
            GATED,
            changed(make_pod("p", memory="1Gi"), "metadata", labels={"a": "b"}),
            ActionType.UPDATE_POD_LABEL
            | ActionType.UPDATE_POD_SCALE_DOWN
            | ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            id="several at once",
        ),
    ],
)
def test_pod_changes(old, new, expected):
    assert pod_changes(old, new) == expected
