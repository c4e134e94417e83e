"""Remedies of contrib plugins, tried on a copy of the cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from moorage.api import decoding
from moorage.api.resources import NODES, PODS, Resource
from moorage.app.configuration import configure
from moorage.app.offline import question_engine
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES
from moorage.explain.explanation import explain
from moorage.explain.judging import Judge
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod
from tests.contrib.capacity_scheduling.tenants import CONFIG, quota
from tests.contrib.configs import enabling
from tests.contrib.coscheduling.gangs import podgroup
from tests.contrib.gpu.gpus import gpu_node, gpu_pod, profile
from tests.contrib.topology_match.machines import guaranteed, machine, topology


def remedies(config: str, objects: dict[Resource, Any], pod: Any) -> list[str]:
    found = {NODES: [make_node("n", cpu="8")], **objects}
    engine = question_engine(configure(config, discover=False), ClusterObjects(found).changes())
    before = asyncio.run(explain(Judge.of(engine, pod), pod))
    assert asyncio.run(explain(Judge.of(engine, pod), pod)).to_dict() == before.to_dict(), "nothing stays changed"
    return [each.text for each in before.remedies if each.nodes]


def test_the_max_of_a_quota_may_be_raised():
    quotas = [decoding.convert(ELASTICQUOTAS, quota("red", 2, 2)), decoding.convert(ELASTICQUOTAS, quota("blue", 6))]
    running = make_pod("old", namespace="red", cpu="1500m", node="n")
    pod = make_pod("new", namespace="red", cpu="1")
    found = remedies(CONFIG, {ELASTICQUOTAS: quotas, PODS: [running, pod]}, pod)
    assert found == ["Raise the max of ElasticQuota red/q to 2500m cpu"]


def test_a_group_may_need_fewer_members():
    group = podgroup("g", 3)
    group["metadata"]["namespace"] = "default"
    made = decoding.convert(PODGROUPS, group)
    config = enabling("Coscheduling", without=("PrioritySort",))
    members = [make_pod(f"m{i}", cpu="1", labels={LABEL: "g"}) for i in range(2)]
    found = remedies(config, {PODGROUPS: [made], PODS: members}, members[0])
    assert found == ["Lower minMember of PodGroup default/g from 3 to 2"]


def test_a_pod_may_take_the_gpus_that_a_node_has():
    node, pod = gpu_node("n", cards=2), gpu_pod(count=4)
    assert remedies(profile(), {NODES: [node], PODS: [pod]}, pod) == ["Ask for at most 2 GPUs"]


def test_a_part_of_a_gpu_may_be_smaller_or_another_pod_may_go():
    busy = gpu_pod("busy", milli=700, index="0", node="n")
    pod = gpu_pod(milli=500)
    found = remedies(profile(), {NODES: [gpu_node("n", cards=1)], PODS: [busy, pod]}, pod)
    assert found == [
        "Ask for at most 300 milli of a GPU",
        "Delete pod default/busy on node n",
        "Add one more node like n",
    ]


def test_another_gpu_model_may_do():
    pod = gpu_pod(models="V100|A100")
    found = remedies(profile(), {NODES: [gpu_node("n", model="T4")], PODS: [pod]}, pod)
    assert found == ["Accept the GPU model T4"]


def test_a_container_may_fit_one_numa_zone():
    zones = decoding.convert(NODE_RESOURCE_TOPOLOGIES, topology("n"))
    pod = guaranteed("p", "6")
    config = enabling("NodeResourceTopologyMatch")
    found = remedies(config, {NODES: [machine("n")], NODE_RESOURCE_TOPOLOGIES: [zones], PODS: [pod]}, pod)
    assert found[0] == "Request at most 4 cpu in container c0, as much as one NUMA zone has"
