"""The nodes of a cluster: pools of identical nodes, described in a YAML file or by a number.

    pools:
      - name: worker                  # nodes worker-0, worker-1, …
        count: 3
        zones: [eu-1a, eu-1b]         # in turn, as topology.kubernetes.io/zone
        labels: {disk: ssd}
        annotations: {}
        taints: [{key: gpu, value: "true", effect: NoSchedule}]
        capacity: {cpu: "8", memory: 32Gi, pods: "110"}
        unschedulable: false

Only the format is checked here; the API server validates the nodes and names the field too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from moorage.api import quantity
from moorage.api.errors import MoorageError, QuantityError
from moorage.api.node import HOSTNAME, ZONE
from moorage.api.problems import Problem, child
from moorage.config import yaml_source
from moorage.config.types import ConfigError

MAX_NODES = 100_000
MAX_NUMA_ZONES = 8
"""The number that a kubelet aligns by default."""
CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}


class PoolTaint(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    key: str
    effect: str
    value: str = ""


class Pool(msgspec.Struct, forbid_unknown_fields=True):
    """Nodes that differ only in name and zone."""

    name: str
    count: int = 1
    zones: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[PoolTaint] = []
    capacity: dict[str, str | int] = {}
    """Added to the default of 8 CPUs, 32 GiB, 100 GiB of disk and 110 pods."""
    unschedulable: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    pools: list[Pool]


def of_count(count: int) -> list[Pool]:
    """Return identical nodes over three zones, for `--nodes N`."""
    return [Pool("node", count, zones=["zone-a", "zone-b", "zone-c"])]


def read(path: Path) -> list[Pool]:
    """Return the pools of a file. A ConfigError has all mistakes."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise MoorageError(f"cannot read the cluster file {path}: {error.strerror}") from error
    return parse(text, str(path))


def parse(text: str | bytes, source: str = "<cluster>") -> list[Pool]:
    value, problems = yaml_source.parse(text)
    if not problems:
        try:
            pools = msgspec.convert(value, _File).pools
        except msgspec.ValidationError as error:
            problems = [_problem(error)]
        else:
            problems = [found for index, pool in enumerate(pools) for found in _judge(index, pool)]
            problems += _judge_together(pools)
    if problems:
        raise ConfigError(problems, source)
    return pools


def nodes(pools: list[Pool]) -> list[dict[str, Any]]:
    """Return the Node objects."""
    return [_node(pool, index) for pool in pools for index in range(pool.count)]


def _node(pool: Pool, index: int) -> dict[str, Any]:
    name = f"{pool.name}-{index}"
    labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if pool.zones:
        labels[ZONE] = pool.zones[index % len(pool.zones)]
    metadata: dict[str, Any] = {"name": name, "labels": labels | pool.labels}
    if pool.annotations:
        metadata["annotations"] = pool.annotations
    spec: dict[str, Any] = {}
    if pool.taints:
        spec["taints"] = [msgspec.to_builtins(taint) for taint in pool.taints]
    if pool.unschedulable:
        spec["unschedulable"] = True
    capacity = {resource: str(amount) for resource, amount in (CAPACITY | pool.capacity).items()}
    status = {"capacity": capacity, "allocatable": capacity}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _judge(index: int, pool: Pool) -> list[Problem]:
    path = child("pools", index)
    problems = []
    if not pool.name:
        problems.append(Problem(path=child(path, "name"), message="Required value"))
    if pool.count < 0:
        message = f"Invalid value: {pool.count}: must not be negative"
        problems.append(Problem(path=child(path, "count"), message=message))
    for resource, amount in pool.capacity.items():
        try:
            quantity.parse(amount)
        except QuantityError as error:
            problems.append(Problem(path=child(path, "capacity", resource), message=str(error)))
    return problems


def _judge_together(pools: list[Pool]) -> list[Problem]:
    problems = []
    seen: set[str] = set()
    for index, pool in enumerate(pools):
        if pool.name in seen:
            message = f'Duplicate value: "{pool.name}": the names of two pools must differ'
            problems.append(Problem(path=child("pools", index, "name"), message=message))
        seen.add(pool.name)
    total = sum(max(0, pool.count) for pool in pools)
    if total > MAX_NODES:
        message = f"the pools have {total} nodes in total; the limit is {MAX_NODES}"
        problems.append(Problem(path="pools", message=message))
    return problems


def _problem(error: msgspec.ValidationError) -> Problem:
    """Convert an error of msgspec, which names the field as `$.pools[0].count`."""
    message, _, place = str(error).partition(" - at `")
    return Problem(path=place.rstrip("`").removeprefix("$").removeprefix("."), message=message)
