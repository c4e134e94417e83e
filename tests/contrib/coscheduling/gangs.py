"""Clusters with Coscheduling, and the groups that are put into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from moorage.api.pod import Pod
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling


def cluster(args: Mapping[str, Any] | None = None, **options: Any) -> Cluster:
    """The default plugins and Coscheduling, which sorts the queue."""
    return Cluster(config=enabling("Coscheduling", args, without=("PrioritySort",)), **options)


def podgroup(name: str, members: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "creationTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"minMember": members, **spec},
    }


def member(group: str, number: int | str, **options: Any) -> Pod:
    return make_pod(f"{group}-{number}", labels={LABEL: group}, **{"cpu": "1", **options})


def gang(name: str, size: int, *, timeout: int = 30, **options: Any) -> list[Any]:
    """A PodGroup and all its pods, each of which asks for one cpu."""
    return [
        podgroup(name, size, scheduleTimeoutSeconds=timeout),
        *(member(name, number, **options) for number in range(size)),
    ]


def nodes(number: int, cpu: str = "1") -> list[Any]:
    return [make_node(f"n{index}", cpu=cpu) for index in range(number)]


def started(found: Cluster) -> Counter[str]:
    """Group → number of its bound pods."""
    return Counter(pod.labels[LABEL] for pod in found.pods() if pod.spec.node_name and LABEL in pod.labels)


def refusal(found: Cluster, name: str) -> str:
    """Why the pod was not scheduled in its last attempt."""
    return found.record(name).message


def held(found: Cluster) -> list[str]:
    """Names of the pods that wait in Permit."""
    return sorted(waiting.pod.name for waiting in found.scheduler.engine.services.waiting)


def plugin_of(found: Cluster) -> Any:
    """The Coscheduling that runs."""
    return found.scheduler.engine.profiles["default-scheduler"].plugins["Coscheduling"]


def remove(found: Cluster, name: str) -> None:
    """Delete a pod at once."""
    pod = found.pod(name)
    assert pod is not None
    found.delete(pod)
