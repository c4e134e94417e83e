"""TopologicalSort: the order of an AppGroup's workloads within the group, PrioritySort's between groups."""

from __future__ import annotations

from moorage.app.configuration import configure
from moorage.bench.world import BenchWorld, raw_pod
from moorage.contrib.network_aware.app_groups import APPGROUPS, GROUP, WORKLOAD
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling
from tests.contrib.network_aware.shop import app_group, member

CONFIG = enabling("TopologicalSort", without=("PrioritySort",))


def tried(cluster: Cluster) -> list[str]:
    return [record.pod.partition("/")[2] for record in cluster.scheduler.records]


def test_pods_of_a_group_are_tried_in_its_order_whatever_their_priority():
    with Cluster(config=CONFIG, start=False) as cluster:
        cluster.add(make_node("n"), app_group(order=("db", "cart", "web")))
        cluster.add(member("web", "web", priority=9), member("cart-1", "cart"), member("cart-2", "cart"))
        cluster.add(member("db", "db"), member("unlisted", "cron"))
        cluster.start()
        cluster.settle()
        assert tried(cluster) == ["unlisted", "db", "cart-1", "cart-2", "web"]


def test_pods_of_no_group_or_of_one_that_does_not_exist_are_tried_by_priority_and_age():
    with Cluster(config=CONFIG, start=False) as cluster:
        cluster.add(make_node("n"), app_group("elsewhere", order=("db", "web"), namespace="other"))
        cluster.add(member("a", "web", "elsewhere"), member("b", "db", "elsewhere"), make_pod("plain"))
        cluster.add(make_pod("urgent", priority=5))
        cluster.start()
        cluster.settle()
        assert tried(cluster) == ["urgent", "a", "b", "plain"]


def test_pods_that_wait_are_sorted_again_when_the_order_changes():
    world = BenchWorld(0, 0, configured=configure(CONFIG, discover=False))
    world.put(APPGROUPS, [app_group(order=("a", "b", "c"))])
    for name in ("b", "a", "c"):
        world.enqueue(raw_pod(name, labels={GROUP: "shop", WORKLOAD: name}))
    world.put(APPGROUPS, [app_group(order=("c", "b", "a"))])
    world.engine.drain()
    found = [world.engine.queue.pop() for _ in range(3)]
    assert [info.pod.name for info in found if info is not None] == ["c", "b", "a"]


def test_pods_that_are_before_each_other_in_a_circle_are_all_tried():
    """first before second by its workload, second before the other by priority, the other before first."""
    with Cluster(config=CONFIG, start=False) as cluster:
        cluster.add(make_node("n"), app_group(order=("first", "second")))
        cluster.add(member("second", "second", priority=9), make_pod("other", priority=5))
        cluster.add(member("first", "first"))
        cluster.start()
        cluster.settle()
        assert sorted(tried(cluster)) == ["first", "other", "second"]
        cluster.validate()
