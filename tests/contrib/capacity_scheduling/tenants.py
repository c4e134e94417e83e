"""A cluster with quotas, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moorage.api.pod import Pod
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS, PARENT
from moorage.testing import Cluster, make_node
from tests.contrib.configs import enabling

CONFIG = enabling("CapacityScheduling", without=("DefaultPreemption",))


def quota(namespace: str, least: Any = None, most: Any = None, name: str = "q", parent: str = "") -> dict[str, Any]:
    """An ElasticQuota with this min and max; a bare number is meant to be cpus."""
    spec = {key: cpu(value) for key, value in (("min", least), ("max", most)) if value is not None}
    header = {"apiVersion": ELASTICQUOTAS.api_version, "kind": ELASTICQUOTAS.kind}
    meta = {"name": name, "namespace": namespace, "annotations": {PARENT: parent} if parent else {}}
    return {**header, "metadata": meta, "spec": spec}


def cpu(value: Any) -> Mapping[str, Any]:
    return {"cpu": str(value)} if isinstance(value, int) else value


@contextmanager
def tenants(*objects: Any, config: str = CONFIG, **options: Any) -> Iterator[Cluster]:
    """A cluster with these objects; nodes of 4 cpus unless some are given."""
    with Cluster(config=config, verify_reuse=True, **options) as cluster:
        cluster.add(objects)
        if not any(getattr(found, "kind", "") == "Node" for found in objects):
            cluster.add(make_node("n0"))
        cluster.settle()
        yield cluster


def existing(cluster: Cluster, name: str, namespace: str) -> Pod:
    pod = cluster.pod(name, namespace)
    assert pod is not None
    return pod


def end_terminating(cluster: Cluster) -> list[str]:
    """As the kubelets do it."""
    ending = [pod for pod in cluster.pods() if pod.is_terminating]
    for pod in ending:
        cluster.delete(pod)
    return sorted(pod.key for pod in ending)


def used(cluster: Cluster, namespace: str, name: str = "q") -> Any:
    return cluster.run(cluster.client.get(ELASTICQUOTAS, name, namespace)).get("status", "used")


def account(cluster: Cluster) -> Any:
    profile = next(iter(cluster.scheduler.engine.profiles.values()))
    return profile.plugins["CapacityScheduling"].account  # type: ignore[attr-defined]
