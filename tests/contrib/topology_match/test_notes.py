"""What an operator is notified of."""

from __future__ import annotations

import pytest

from moorage.api.errors import MoorageError
from moorage.app.configuration import configure
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES
from moorage.manifests import DeployOptions, manifests
from tests.contrib.configs import enabling
from tests.contrib.topology_match.machines import guaranteed, machine, numa_cluster, put, topology


def lines(caplog, text):
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


def test_sp452_nodes_without_object_are_counted_in_one_line(caplog):
    with numa_cluster(start=False) as cluster:
        cluster.add([machine(f"n{number}") for number in range(5)], topology("n3"))
        cluster.start()
        cluster.settle(300)
        [line] = lines(caplog, "have no NodeResourceTopology")
        assert line == (
            "4 of 5 nodes have no NodeResourceTopology, so NodeResourceTopologyMatch refuses none of them "
            "(n0, n1, n2, …): run what publishes it there, such as nfd-topology-updater"
        )
        cluster.add(topology(f"n{number}") for number in (0, 1, 2, 4))
        cluster.settle(300)
        assert lines(caplog, "have no NodeResourceTopology")[1:] == [
            "0 of 5 nodes have no NodeResourceTopology, so NodeResourceTopologyMatch refuses none of them"
        ]


def test_a_node_whose_object_stays_old_has_an_event_that_says_so(caplog):
    with numa_cluster({"cacheResyncPeriodSeconds": 5}) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("foreign", "1", node="n0", scheduler="other"))
        cluster.add(guaranteed("late", "1", node="n0", scheduler="other"))
        cluster.settle(40)
        assert cluster.events("n0") == []
        cluster.settle(600)
        [event] = cluster.events("n0", "StaleNodeResourceTopology")
        assert event.type == "Warning"
        assert event.note.startswith("NodeResourceTopology n0 has not shown the pods of the node for ")
        assert len(lines(caplog, "has not shown the pods")) == 1


def test_an_object_without_fingerprint_is_complained_about_once(caplog):
    with numa_cluster({"cacheResyncPeriodSeconds": 5}) as cluster:
        put(cluster, machine(), topology())
        cluster.add(guaranteed("late", "1", node="n0", scheduler="other"))
        cluster.settle(60)
        [line] = lines(caplog, "has no attribute")
        assert "set cacheResyncPeriodSeconds of NodeResourceTopologyMatch to 0" in line


def test_a_server_without_the_kind_is_a_failure_that_names_the_way_out():
    with numa_cluster() as cluster:
        cluster.settle()
        cluster.scheduler.engine.stores[NODE_RESOURCE_TOPOLOGIES].known = False
        profile = next(iter(cluster.scheduler.engine.profiles.values()))
        with pytest.raises(MoorageError, match=r"does not serve noderesourcetopologies.*`moorage manifests`"):
            cluster.run(profile.plugins["NodeResourceTopologyMatch"].run())


def test_the_definition_is_that_of_the_kind():
    config = enabling("NodeResourceTopologyMatch")
    found = manifests(configure(config, discover=False), config, DeployOptions(name="numa", image="moorage:test"))
    [definition] = [obj for obj in found if obj["kind"] == "CustomResourceDefinition"]
    assert definition["metadata"]["name"] == "noderesourcetopologies.topology.node.k8s.io"
    assert definition["spec"]["scope"] == "Cluster"
    assert "subresources" not in definition["spec"]["versions"][0]
