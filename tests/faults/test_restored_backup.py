"""Case A10: etcd is restored from a backup under a running API server, so the newest part of its history is gone.

kube-apiserver accepts a watch from a version that it has yet to reach, and sends nothing until then. The store of
the embedded server does the same, and keeps watches open that began before the backup.
"""

from __future__ import annotations

import pytest

from moorage.api.resources import NODES, PODS
from moorage.client.probing import PROBE_SECONDS
from moorage.store.durability import InMemory
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import make_node, make_pod
from tests.embedded import wire_faults as wire
from tests.faults.test_group_a import MODES, a_cluster, cluster_paused, proves_alive
from tests.faults.world import HttpCluster, is_watch_of


def restore(cluster: HttpCluster, version: int) -> None:
    """Undo everything after a version, which becomes the newest one."""
    durability = cluster.store.durability
    assert isinstance(durability, InMemory)
    durability.version = version
    cluster.store.failed()
    durability.version = InMemory.version


@pytest.fixture
def metrics() -> SchedulerMetrics:
    return SchedulerMetrics(lambda: 0.0)


@MODES
@pytest.mark.parametrize("outage", [False, True], ids=["watches stay open", "watches are cut"])
def test_a10_a_restored_backup_is_noticed_and_replaces_the_cache(streaming, outage, metrics, caplog):
    with a_cluster(streaming=streaming, metrics=metrics, probe_server=True) as cluster:
        cluster.add(make_pod("kept"), make_pod("deleted", node="a"))
        cluster.settle(2)
        backup = cluster.store.version
        cluster.add(make_node("b"))
        cluster.store.delete(PODS, "deleted", namespace="default", grace_period=0)
        cluster.add(*(make_pod(f"new-{index}") for index in range(20)))
        cluster.settle(2)
        assert all(cluster.node_of(f"new-{index}") for index in range(20))
        if outage:
            with cluster_paused(cluster):
                restore(cluster, backup)
        else:
            restore(cluster, backup)
        cluster.add(make_pod("after"))
        cluster.settle(PROBE_SECONDS + 5)
        assert cluster.node_of("after") == "a"
        assert set(cluster.scheduler.informers.informers[PODS].objects) == {
            "default/kept",
            "default/deleted",
            "default/after",
        }
        assert list(cluster.scheduler.informers.informers[NODES].objects) == ["a"]
        cluster.check()
        assert sum(metrics.rewinds.samples().values()) == 1
        assert "The API server has lost changes that it had sent" in caplog.text
        proves_alive(cluster)


@MODES
def test_a10_a_pod_whose_bind_is_lost_is_scheduled_again(streaming):
    """The backup has the pod as pending, the scheduler has it on a node."""
    with a_cluster(streaming=streaming, probe_server=True) as cluster:
        cluster.add(make_pod("p", gates=["wait"]))
        cluster.settle(2)
        cluster.patch(PODS, "p", {"spec": {"schedulingGates": None}}, "default")
        backup = cluster.store.version
        cluster.settle(2)
        assert cluster.node_of("p") == "a"
        binds = len(cluster.binds())
        restore(cluster, backup)
        assert cluster.node_of("p") == ""
        cluster.settle(PROBE_SECONDS + 10)
        assert (cluster.node_of("p"), len(cluster.binds())) == ("a", binds + 1)
        cluster.check()


def test_a10_a_pod_that_was_bound_in_the_lost_history_only_does_not_stay_assumed():
    """The bind was answered, its event had not arrived, and the backup has the pod in the version that is known."""
    with a_cluster(streaming=False, probe_server=True) as cluster:
        cluster.add(make_pod("p", node_selector={"x": "y"}))
        cluster.settle(2)
        cluster.spoil(wire.Effect(chunk_delay=300.0), **is_watch_of("pods"))
        cluster.transport.cut()
        cluster.settle(5)
        cluster.label_node("a", x="y")
        backup = cluster.store.version
        cluster.settle(PROBE_SECONDS + 5)
        assert (cluster.node_of("p"), cluster.assumed()) == ("a", ["default/p"])
        restore(cluster, backup)
        cluster.wire.clear()
        cluster.settle(PROBE_SECONDS + 10)
        assert (cluster.node_of("p"), cluster.assumed(), len(cluster.binds())) == ("a", [], 2)
        cluster.check()
