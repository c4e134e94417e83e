"""The trace openb as Kubernetes objects: nodes, pods in the order of their arrival, and typical pods."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.contrib.gpu.requests import GPU_COUNT, GPU_MILLI, GPU_MODEL, WHOLE
from mooring.testing import make_node, make_pod

THRESHOLD = 0.95
"""Of all pods are of typical classes."""


class Arrival(NamedTuple):
    """A row of the list of pods."""

    cpu: int
    memory: int
    count: int
    milli: int
    models: str

    @property
    def gpu(self) -> int:
        return self.count * self.milli

    def pod(self, name: str) -> Pod:
        annotations = {}
        if self.gpu:
            annotations = {GPU_COUNT: str(self.count), GPU_MILLI: str(self.milli)}
        if self.models:
            annotations[GPU_MODEL] = self.models
        return make_pod(name, cpu=f"{self.cpu}m", memory=f"{self.memory}Mi", annotations=annotations)


class Trace:
    """The files of one trace, for one seed."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self._rows = [_arrival(row) for row in _table(folder / f"openb_pod_list_{name}.csv.gz")]
        order = {}
        with gzip.open(folder / f"order_{name}.txt.gz", "rt") as lines:
            for line in lines:
                number, what, *values = line.split()
                if int(number) == seed:
                    order[what] = [int(value) for value in values]
        self.arrivals = [self._rows[row] for row in order["pods"]]
        nodes = [_node(row) for row in _table(folder / "openb_node_list_gpu_node.csv.gz")]
        # Of nodes with equal scores the first wins, and the first is the one that was created first.
        self.nodes = [node for _, node in sorted(zip(order["nodes"], nodes, strict=True), key=lambda n: n[0])]

    def typical_pods(self) -> list[dict[str, Any]]:
        """The most frequent classes, as arguments of FGD. Memory does not count."""
        classes = Counter((row.cpu, row.milli, row.count, row.models) for row in self._rows)
        ranked = sorted(classes.items(), key=lambda found: (found[1], found[0]), reverse=True)
        typical: list[dict[str, Any]] = []
        taken = 0
        for (cpu, milli, count, models), number in ranked:
            if taken >= THRESHOLD * len(self._rows):
                break
            taken += number
            typical.append(
                {"cpu": f"{cpu}m", "gpuMilli": milli, "gpuCount": max(count, 1), "gpuCardModel": models,
                 "weight": number}
            )  # fmt: skip
        return typical


def _table(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as lines:
        return list(csv.DictReader(lines))


def _arrival(row: dict[str, str]) -> Arrival:
    numbers = (int(row[name]) for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
    return Arrival(*numbers, row.get("gpu_spec") or "")


def _node(row: dict[str, str]) -> Node:
    cards = int(row["gpu"])
    return make_node(
        row["sn"], cpu=f"{row['cpu_milli']}m", memory=f"{row['memory_mib']}Mi", pods=1001,
        extended={GPU_COUNT: cards, GPU_MILLI: cards * WHOLE}, labels={GPU_MODEL: row["model"]},
    )  # fmt: skip
