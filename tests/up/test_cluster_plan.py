from pathlib import Path

import pytest

from moorage.api.errors import MoorageError
from moorage.up.cluster_plan import DEFAULT_PORT, ClusterPlan


def test_by_default_there_are_three_nodes_and_the_default_profile():
    plan = ClusterPlan.of()
    assert [(pool.name, pool.count) for pool in plan.orders.pools] == [("node", 3)]
    assert plan.orders.only_if_empty
    assert (plan.orders.numa, ClusterPlan.of(numa=2).orders.numa) == (0, 2)
    assert plan.configuration is not None
    assert [profile.scheduler_name for profile in plan.configuration.profiles] == ["default-scheduler"]
    assert (plan.orders.port, plan.any_port_will_do) == (DEFAULT_PORT, True)


def test_two_clusters_have_two_kubeconfigs(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    plan = ClusterPlan.of()
    assert plan.kubeconfig_at(DEFAULT_PORT) == Path("/home/ada/.moorage/kubeconfig")
    assert plan.kubeconfig_at(40123) == Path("/home/ada/.moorage/kubeconfig-40123")
    assert ClusterPlan.of(kubeconfig=Path("here")).kubeconfig_at(40123) == Path("here")


def test_files_are_read_before_anything_starts(tmp_path):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("pools: [{name: gpu, count: 2}]")
    objects = tmp_path / "objects.yaml"
    objects.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}")
    plan = ClusterPlan.of(cluster=cluster, apply=(objects,), port=0)
    assert [(pool.name, pool.count) for pool in plan.orders.pools] == [("gpu", 2)]
    assert [obj["kind"] for obj in plan.orders.objects] == ["Namespace"]
    assert (plan.orders.port, plan.any_port_will_do, plan.orders.only_if_empty) == (0, False, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 1, "cluster": Path("a")}, "--nodes and --cluster exclude each other"),
        ({"config": Path("a"), "scheduler": False}, "--no-scheduler"),
        ({"cluster": Path("/nowhere/c.yaml")}, "cannot read the cluster file /nowhere/c.yaml"),
        ({"config": Path("/nowhere/c.yaml")}, "/nowhere/c.yaml"),
        ({"apply": (Path("/nowhere/c.yaml"),)}, "/nowhere/c.yaml cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(MoorageError, match=message):
        ClusterPlan.of(**options)
