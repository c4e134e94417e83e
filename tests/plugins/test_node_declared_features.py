"""NodeDeclaredFeatures: what a pod needs, who declares it, and what wakes a refused pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import Container, ContainerRestartRule
from moorage.framework.events import QueueingHint
from moorage.framework.status import Code
from moorage.plugins.node_declared_features import (
    HOST_NETWORK_USERNS,
    RESTART_ALL_CONTAINERS,
    node_declares_others,
    own_needs_changed,
    required_features,
)
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask

PLUGIN = "NodeDeclaredFeatures"
RESTARTING = Container(name="r", restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),))
RULED = Container(name="r", restart_policy_rules=(ContainerRestartRule(action="Restart"),))


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        pytest.param({}, set(), id="a plain pod"),
        pytest.param({"containers": [RESTARTING]}, {RESTART_ALL_CONTAINERS}, id="a container restarts all"),
        pytest.param({"init_containers": [RESTARTING]}, {RESTART_ALL_CONTAINERS}, id="an init container"),
        pytest.param({"containers": [RULED]}, set(), id="another rule"),
        pytest.param({"host_network": True, "host_users": False}, {HOST_NETWORK_USERNS}, id="user namespace"),
        pytest.param({"host_network": True}, set(), id="host network alone"),
        pytest.param({"host_network": True, "host_users": True}, set(), id="users of the host"),
        pytest.param({"host_users": False}, set(), id="user namespace alone"),
    ],
)
def test_what_a_pod_needs(spec, features):
    pod = make_pod("a", **spec)
    assert required_features(pod) == features
    assert ask(PLUGIN, pod, [make_node("n")]).skipped is not bool(features)


def test_nodes_must_declare_all_of_it():
    pod = make_pod("a", containers=[RESTARTING], host_network=True, host_users=False)
    both = (HOST_NETWORK_USERNS, "Other", RESTART_ALL_CONTAINERS)
    nodes = [make_node("none"), make_node("one", declared_features=both[:1])]
    reason = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's required features",))
    refused = ask(PLUGIN, pod, [*nodes, make_node("both", declared_features=both)]).refused()
    assert refused == {"none": reason, "one": reason}


features = st.lists(st.sampled_from([RESTART_ALL_CONTAINERS, HOST_NETWORK_USERNS, "Other"]), max_size=3)


@given(st.booleans(), st.booleans(), st.lists(features, min_size=1, max_size=4))
def test_all_forms_agree_with_the_plain_model(restarts, namespaced, declared):
    spec: dict[str, Any] = {"host_network": True, "host_users": False} if namespaced else {}
    pod = make_pod("a", containers=[RESTARTING if restarts else RULED], **spec)
    wanted = [RESTART_ALL_CONTAINERS] * restarts + [HOST_NETWORK_USERNS] * namespaced
    nodes = [make_node(f"n{i}", declared_features=tuple(names)) for i, names in enumerate(declared)]
    refused = ask(PLUGIN, pod, nodes).refused()
    assert set(refused) == {f"n{i}" for i, names in enumerate(declared) if not all(name in names for name in wanted)}


def test_hints():
    plain, declaring = make_node("n"), make_node("n", declared_features=("A",))
    pod, changed = make_pod("a"), make_pod("a", containers=[RESTARTING])
    queue, skip = QueueingHint.QUEUE, QueueingHint.SKIP
    assert node_declares_others(pod, None, plain) is queue
    assert node_declares_others(pod, plain, declaring) is queue
    assert node_declares_others(pod, declaring, declaring) is skip
    assert own_needs_changed(pod, pod, changed) is queue
    assert own_needs_changed(pod, pod, pod) is skip
    assert own_needs_changed(pod, make_pod("b"), make_pod("b", containers=[RESTARTING])) is skip
