"""What a UI shows of attempts, where kube-scheduler-simulator shows something else. The numbers are those of
docs/ui.md."""

from __future__ import annotations

from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.endpoints.asking import Asker

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: light
  plugins: {score: {disabled: [{name: NodeResourcesFit}], enabled: [{name: NodeResourcesFit, weight: 2}]}}
- schedulerName: heavy
  plugins: {score: {disabled: [{name: NodeResourcesFit}], enabled: [{name: NodeResourcesFit, weight: 7}]}}
"""


def test_defect_6_refusals_are_those_of_the_attempt_and_not_of_the_dry_run_of_its_preemption() -> None:
    with Cluster() as cluster:
        cluster.add(make_node("a", cpu="2"), make_pod("low", cpu="2", priority=0))
        cluster.settle()
        cluster.add(make_pod("high", cpu="2", priority=100))
        cluster.settle()
        first = Asker(cluster).get("records?pod=default/high")["records"][0]
    assert (first["nominatedNode"], first["victims"]) == ("a", ["default/low"])
    [refused] = first["refusals"]
    assert (refused["plugin"], refused["reasons"]) == ("NodeResourcesFit", ["Insufficient cpu"])
    assert refused["nodeNames"] == ["a"], "without its victim the node would fit, and yet it was refused"


def test_defect_7_attempts_of_a_pod_that_was_created_again_have_another_uid() -> None:
    with Cluster() as cluster:
        cluster.add(make_node("a", cpu="2"), old := make_pod("p", cpu="4"))
        cluster.settle()
        cluster.delete(old)
        cluster.add(make_pod("p", cpu="8"))
        cluster.settle()
        records = Asker(cluster).get("records?pod=default/p")["records"]
    assert [record["attempt"] for record in records] == [1, 1]
    assert len({record["uid"] for record in records}) == 2


def test_defect_8_scores_are_weighted_by_the_profile_of_the_pod() -> None:
    with Cluster(config=TWO_PROFILES) as cluster:
        cluster.add(make_nodes(2, cpu="4"))
        cluster.settle()
        cluster.add(make_pod("p", cpu="1", scheduler_name="light"))
        cluster.add(make_pod("q", cpu="1", scheduler_name="heavy"))
        cluster.settle()
        for pod, weight in (("p", 2), ("q", 7)):
            [record] = Asker(cluster).get(f"records?pod=default/{pod}")["records"]
            for node in record["scores"]:
                [fit] = [each for each in node["plugins"] if each["plugin"] == "NodeResourcesFit"]
                assert fit["weighted"] == weight * fit["normalized"] > 0


def test_defect_10_an_attempt_on_thousands_of_nodes_is_kept_whole_and_nothing_is_written_to_the_pod() -> None:
    with Cluster() as cluster:
        cluster.add(make_nodes(3000, cpu="1"))
        cluster.settle()
        cluster.add(make_pod("p", cpu="8"))
        cluster.settle()
        [record] = Asker(cluster).get("records?pod=default/p&nodes=5000")["records"]
        pod = cluster.pod("p")
    [refused] = record["refusals"]
    assert refused["nodes"] == len(refused["nodeNames"]) == 3000
    assert pod is not None
    assert not pod.metadata.annotations
