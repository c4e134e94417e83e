"""The public test kit: objects in one line, and the real scheduler on a cluster in memory, in virtual time.

    from moorage.testing import Cluster, make_node, make_pod

    def test_pods_go_to_labelled_nodes():
        with Cluster(plugins=[Sample], config=CONFIG) as cluster:
            cluster.add(make_node("a"), make_node("b", labels={"cpu": "true"}), make_pod("p"))
            cluster.settle()
            assert cluster.node_of("p") == "b"

Nothing in Moorage imports this package.
"""

from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.sim.loop import VirtualClock, VirtualLoop, run
from moorage.store.faults import Fault, Faults, conflict, fail, not_found, server_error
from moorage.testing.builders import make_node, make_nodes, make_pod, make_pods
from moorage.testing.cluster import Cluster

__all__ = [
    "Cluster",
    "ConfigError",
    "Fault",
    "Faults",
    "VirtualClock",
    "VirtualLoop",
    "configure",
    "conflict",
    "fail",
    "make_node",
    "make_nodes",
    "make_pod",
    "make_pods",
    "not_found",
    "run",
    "server_error",
]
