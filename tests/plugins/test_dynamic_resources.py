"""DynamicResources: nothing for pods without claims, a clear refusal for the others."""

from __future__ import annotations

from moorage.api.pod import PodResourceClaim
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code, Status
from moorage.framework.statuses import NodeStatuses
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask

PLUGIN = "DynamicResources"
CLAIMING = make_pod("a", resource_claims=(PodResourceClaim(name="gpu", resource_claim_name="mine"),))
UNSUPPORTED = "allocating devices for resource claims is not supported yet"


def test_a_pod_without_claims_passes_by():
    asked = ask(PLUGIN, make_pod("a"), [make_node("n")])
    assert asked.skipped
    assert asked.plugin.sign(asked.pod) is not None
    status = asked.plugin.post_filter(asked.state, asked.pod, NodeStatuses(asked.world.nodes))
    assert status == Status.unschedulable(), "1.36 said that there are no claims to deallocate"


def test_post_filter_trips_over_a_pre_filter_that_never_ran():
    asked = ask(PLUGIN, make_pod("a"), [make_node("n")])
    status = asked.plugin.post_filter(CycleState(), asked.pod, NodeStatuses(asked.world.nodes))
    assert status == Status.error("not found")


def test_every_node_scores_the_same():
    assert ask(PLUGIN, make_pod("a"), [make_node("n"), make_node("m")]).scores() == {"n": 0, "m": 0}


def test_a_pod_with_claims_is_refused():
    asked = ask(PLUGIN, CLAIMING, [make_node("n")])
    assert asked.pre == Status.unresolvable(UNSUPPORTED)
    assert asked.plugin.sign(asked.pod) is None


def test_a_pod_with_claims_is_refused_also_where_pre_filter_is_switched_off():
    asked = ask(PLUGIN, CLAIMING, [make_node("n")], pre_filter=False)
    assert asked.refused() == {"n": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (UNSUPPORTED,))}
    assert ask(PLUGIN, make_pod("a"), [make_node("n")], pre_filter=False).refused() == {}


def test_no_event_wakes_it():
    assert list(ask(PLUGIN, CLAIMING, [make_node("n")]).plugin.events_to_register()) == []
