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
from moorage.explain.explanation import explain
from moorage.explain.judging import Judge
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod
from tests.contrib.capacity_scheduling.tenants import CONFIG, quota
from tests.contrib.configs import enabling
from tests.contrib.coscheduling.gangs import podgroup


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
