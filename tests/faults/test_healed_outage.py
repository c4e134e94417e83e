"""The end of an outage: the scheduler works again within three seconds, however long the outage was."""

from __future__ import annotations

import pytest

from moorage.testing import make_pod
from tests.embedded import wire_faults as wire
from tests.faults.test_group_a import MODES, a_cluster, cluster_paused

SECONDS = 3.0


@MODES
@pytest.mark.parametrize("compacted", [False, True], ids=["history kept", "history compacted"])
@pytest.mark.parametrize("outage", [3.0, 10.0, 60.0, 600.0])
def test_a2_a_pod_is_bound_soon_after_the_server_is_back(streaming, compacted, outage):
    with a_cluster(streaming=streaming, probe_server=True) as cluster:
        with cluster_paused(cluster):
            cluster.settle(outage)
            if compacted:
                cluster.store.compact()
        cluster.add(make_pod("p"))
        cluster.settle(SECONDS)
        assert cluster.node_of("p") == "a"
        cluster.check()


def test_a2_an_outage_costs_few_requests():
    """The probe asks for all informers, whose own pauses grow."""
    with a_cluster(probe_server=True) as cluster:
        since = cluster.clock.now()
        with cluster_paused(cluster):
            cluster.settle(600.0)
        kinds = len(cluster.scheduler.informers.informers)
        assert len(cluster.sent(watch=True, since=since)) < 25 * kinds
        assert len(cluster.sent(watch=False, since=since)) < 4 * 600 / 1.5


def test_a_woken_informer_that_fails_again_waits_in_full():
    """Lists are answered, watches are not: the answers must not make the informers spin."""
    with a_cluster(streaming=False, probe_server=True) as cluster:
        cluster.spoil(wire.Effect(refused=True), watch=True)
        cluster.transport.cut()
        since = cluster.clock.now()
        cluster.settle(600.0)
        kinds = len(cluster.scheduler.informers.informers)
        assert len(cluster.sent(watch=True, since=since)) < 60 * kinds
