"""Scenarios of GangPreemption, CrossNodePreemption and quotas in a hierarchy. They run on the embedded
cluster (tests/kubectl) and on the real API server (tests/cluster), in one process with a profile for each, on
nodes of their own."""

from __future__ import annotations

import json
from typing import Protocol

from moorage.contrib.coscheduling.groups import LABEL
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.objects import Json
from tests.contrib.capacity_scheduling.tenants import quota
from tests.contrib.coscheduling.gangs import podgroup

POOL, ZONE = "scenario", "topology.kubernetes.io/zone"
SPACES = ("org", "red", "blue", "other")
SORT = {"queueSort": {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "Coscheduling"}]}}
"""Of all profiles: there is one queue in a process."""


def profile(name: str, *plugins: str, without: tuple[str, ...] = ()) -> Json:
    enabled, disabled = ([{"name": each} for each in names] for names in (plugins, without))
    return {"schedulerName": name, "plugins": {"multiPoint": {"enabled": enabled, "disabled": disabled}, **SORT}}


PROFILES = (
    profile("gangs", "GangPreemption", "Coscheduling", without=("DefaultPreemption", "PrioritySort")),
    profile("across", "CrossNodePreemption"),
    profile("quotas", "CapacityScheduling", without=("DefaultPreemption",)),
)
CONFIG = json.dumps(
    {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": PROFILES}
)


class Cluster(Protocol):
    def create(self, *items: Json) -> None: ...

    def nodes_of(self, namespace: str) -> dict[str, str]:
        """Pod → node, empty for one without, of all pods that are not being deleted."""
        ...


def prepare(cluster: Cluster) -> None:
    values = {"urgent": 100, "vital": 1000}
    cluster.create(*(objects.priority_class(name, value) for name, value in values.items()))
    cluster.create(*(objects.namespace(name) for name in SPACES))


def running(name: str, node: str, **spec: object) -> Json:
    return objects.pod(name, nodeName=node, **spec)  # type: ignore[arg-type]


def settled(cluster: Cluster, expected: dict[str, str], namespace: str = "default") -> None:
    """Until just these pods are there, each on its node."""

    def found() -> bool:
        return {name: cluster.nodes_of(namespace).get(name) for name in expected} == expected

    eventually(found, 60, f"pods are where they should be: {expected}")


def check_gang(cluster: Cluster) -> None:
    """A group that would fit in part evicts no pod; when it fits as a whole, it does."""
    labels = {POOL: "gang"}
    cluster.create(*(objects.node(name, cpu="1", labels=labels) for name in ("g1", "g2")))
    cluster.create(running("low-1", "g1", cpu="1"), running("low-2", "g2", cpu="1", priorityClassName="vital"))
    settled(cluster, {"low-1": "g1", "low-2": "g2"})
    group = podgroup("train", 2)
    cluster.create({**group, "metadata": {"name": "train", "namespace": "default"}})
    cluster.create(
        *(
            objects.pod(
                f"train-{number}", scheduler="gangs", cpu="1", labels={LABEL: "train"}, nodeSelector=labels,
                priorityClassName="urgent",
            )
            for number in range(2)
        )
    )  # fmt: skip
    cluster.create(objects.pod("late", scheduler="gangs", cpu="100m", nodeSelector={POOL: "none"}))
    settled(cluster, {"late": "", "low-1": "g1", "low-2": "g2", "train-0": "", "train-1": ""})
    cluster.create(objects.node("g3", cpu="1", labels=labels))

    def started() -> bool:
        nodes = cluster.nodes_of("default")
        return {nodes["train-0"], nodes["train-1"]} == {"g1", "g3"} and "low-1" not in nodes

    eventually(started, 60, "the group has the new node and that of the pod of lower priority")
    assert cluster.nodes_of("default")["low-2"] == "g2"


def check_across(cluster: Cluster) -> None:
    """A pod of the zone on a full node makes way for one that goes to another node."""
    labels, db = {POOL: "across", ZONE: "east"}, {"app": "db"}
    cluster.create(*(objects.node(name, cpu="4", labels=labels) for name in ("a", "b")))
    cluster.create(running("busy", "b", cpu="3", priorityClassName="vital"))
    cluster.create(running("small-db", "b", cpu="1", labels=db))
    settled(cluster, {"busy": "b", "small-db": "b"})
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": db}}
    cluster.create(
        objects.pod(
            "db", scheduler="across", cpu="3", labels=db, nodeSelector={POOL: "across"},
            priorityClassName="urgent",
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        )
    )  # fmt: skip
    settled(cluster, {"db": "a", "busy": "b"})
    assert "small-db" not in cluster.nodes_of("default")


def check_hierarchy(cluster: Cluster) -> None:
    """A team takes back from the other one of its department, though others have borrowed as well."""
    labels = {POOL: "quotas"}
    cluster.create(objects.node("q", cpu="6", labels=labels))
    shares = {"org": 4, "red": 2, "blue": 2, "other": 2}
    for name, share in shares.items():
        parent = "org/q" if name in ("red", "blue") else ""
        cluster.create(quota(name, {"cpu": str(share), "memory": "4Gi"}, parent=parent))

    def pods(namespace: str, number: int) -> None:
        for index in range(number):
            made = objects.pod(f"{namespace}-{index}", scheduler="quotas", cpu="1", nodeSelector=labels)
            made["metadata"]["namespace"] = namespace
            cluster.create(made)
        settled(cluster, {f"{namespace}-{index}": "q" for index in range(number)}, namespace)

    pods("blue", 3)
    pods("other", 3)
    pods("red", 1)
    assert len(cluster.nodes_of("blue")) == 2
    assert len(cluster.nodes_of("other")) == 3


CHECKS = {"gang": check_gang, "across": check_across, "hierarchy": check_hierarchy}
