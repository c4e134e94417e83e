"""NodePorts: which ports conflict, sidecars, hints; all forms against a plain model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework.events import QueueingHint
from moorage.framework.status import Code
from moorage.plugins.node_ports import clash as do_clash
from moorage.plugins.node_ports import port_was_freed
from moorage.state.pod_entry import PodEntry
from moorage.testing import make_node, make_pod
from moorage.testing.builders import host_port, make_container
from tests.plugins.one_plugin import ask

REFUSED = {"n": (Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",))}


@pytest.mark.parametrize(
    ("mine", "theirs", "clash"),
    [
        pytest.param(host_port(80), host_port(80), True, id="the same"),
        pytest.param(host_port(80), host_port(81), False, id="another number"),
        pytest.param(host_port(80), host_port(80, "UDP"), False, id="another protocol"),
        pytest.param(host_port(80), host_port(80, ""), True, id="no protocol is TCP"),
        pytest.param(host_port(80, ip="10.0.0.1"), host_port(80), True, id="theirs is every address"),
        pytest.param(host_port(80), host_port(80, ip="10.0.0.1"), True, id="mine is every address"),
        pytest.param(host_port(80, ip="0.0.0.0"), host_port(80, ip="10.0.0.1"), True, id="written out"),
        pytest.param(host_port(80, ip="10.0.0.1"), host_port(80, ip="10.0.0.2"), False, id="other addresses"),
        pytest.param(host_port(80, ip="10.0.0.1"), host_port(80, ip="10.0.0.1"), True, id="the same address"),
    ],
)
def test_which_ports_clash(mine, theirs, clash):
    running = make_pod("b", node="n", ports=[theirs])
    assert ask("NodePorts", make_pod("a", ports=[mine]), [make_node("n")], [running]).refused() == (
        REFUSED if clash else {}
    )
    hint = port_was_freed(make_pod("a", ports=[mine]), running, None)
    assert hint is (QueueingHint.QUEUE if clash else QueueingHint.SKIP)


def test_pods_without_host_ports_skip():
    assert ask("NodePorts", make_pod("a", ports=[host_port(0)]), [make_node("n")]).skipped


@pytest.mark.parametrize(("sidecar", "refused"), [(True, REFUSED), (False, {})])
def test_sidecars_hold_their_ports_and_other_init_containers_do_not(sidecar, refused):
    holder = make_pod("b", node="n", init_containers=[make_container("i", ports=[80], sidecar=sidecar)])
    assert ask("NodePorts", make_pod("a", ports=[80]), [make_node("n")], [holder]).refused() == refused


def test_a_dry_run_is_judged_by_its_own_world():
    holder = make_pod("b", node="n", ports=[80])
    asked = ask("NodePorts", make_pod("a", ports=[80]), [make_node("n")], [holder])
    overlay = asked.overlay("n")
    overlay.remove_pod(0, PodEntry(holder))
    assert asked.plugin.filter(asked.state, asked.pod, overlay.view(0)) is None


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        pytest.param(make_pod("b", ports=[80]), QueueingHint.SKIP, id="never had a place"),
        pytest.param(make_pod("b", nominated="n", ports=[80]), QueueingHint.QUEUE, id="was promised one"),
        pytest.param(make_pod("b", node="n"), QueueingHint.SKIP, id="had no ports"),
        pytest.param("?", QueueingHint.QUEUE, id="an object that is no pod"),
    ],
)
def test_deleted_pods(old, hint):
    assert port_was_freed(make_pod("a", ports=[80]), old, None) is hint


ports = st.builds(
    host_port,
    st.integers(79, 81),
    st.sampled_from(["TCP", "UDP", ""]),
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
)


def plain_clash(mine, theirs) -> bool:
    every = ("", "0.0.0.0")
    same_address = mine.host_ip == theirs.host_ip or mine.host_ip in every or theirs.host_ip in every
    same_protocol = (mine.protocol or "TCP") == (theirs.protocol or "TCP")
    return mine.host_port == theirs.host_port and same_protocol and same_address


@given(st.lists(ports, min_size=1, max_size=3), st.lists(st.lists(ports, max_size=3), max_size=4))
def test_all_forms_agree_with_the_plain_model(mine, others):
    nodes = [make_node(f"n{index}") for index in range(len(others) + 1)]
    pods = [make_pod(f"p{index}", node=f"n{index}", ports=theirs) for index, theirs in enumerate(others)]
    refused = ask("NodePorts", make_pod("a", ports=mine), nodes, pods).refused()
    assert set(refused) == {
        f"n{index}" for index, theirs in enumerate(others) if any(plain_clash(a, b) for a in mine for b in theirs)
    }


def test_pods_with_many_ports_are_compared_port_by_port_once():
    """Ten thousand ports on both sides would be a hundred million comparisons."""
    some = [("TCP", "10.0.0.1", number) for number in range(1, 10_001)]
    others = [("TCP", "10.0.0.2", number) for number in range(1, 10_001)]
    assert not do_clash(some, others)
    assert do_clash(some, [*others, ("TCP", "0.0.0.0", 10_000)])
    assert do_clash([("TCP", "0.0.0.0", 1)], others)
    assert not do_clash(some, [("UDP", "0.0.0.0", 1)])
