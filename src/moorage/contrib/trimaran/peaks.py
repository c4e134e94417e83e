"""Peaks: prefer the node whose power grows least, by a model of each node's power over its usage. Follows
pkg/trimaran/peaks/peaks.go of scheduler-plugins."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from moorage.api import json_text
from moorage.api.errors import MoorageError
from moorage.api.meta import Record
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, required
from moorage.api.requests import CPU
from moorage.contrib.metrics.sample import capacity
from moorage.contrib.trimaran.amounts import amount, effective
from moorage.contrib.trimaran.plugin import TrimaranArgs, TrimaranPlugin
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes
from moorage.framework.status import MAX_NODE_SCORE

SCALE = 1e15
"""Of raw scores, which are whole numbers."""
LARGEST = float(2**63 - 1024)
"""The largest raw score."""
ENVIRONMENT = "NODE_POWER_MODEL"


class PowerModel(Record):
    """Watts = k0 + k1 * e^(k2 * percent of cpu in use)."""

    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0


class PeaksArgs(TrimaranArgs):
    """The power models by node."""

    node_power_model: dict[str, PowerModel] = {}
    """Empty: they are in the JSON file that the environment variable NODE_POWER_MODEL names."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        yield from super().validate(path, context)
        if not self.node_power_model and not os.environ.get(ENVIRONMENT):
            detail = f"a model for each node, here or in the file that ${ENVIRONMENT} names"
            yield required(child(path, "nodePowerModel"), detail)


class Peaks(TrimaranPlugin):
    name = "Peaks"
    Args = PeaksArgs

    def __init__(self, args: PeaksArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._models = args.node_power_model or read_models(os.environ[ENVIRONMENT])

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        """Write the increase of power; 0 where it does not count."""
        used, later, counts = self._usage(pod, nodes)
        factor, exponent = self._model(nodes, "k1"), self._model(nodes, "k2")
        with np.errstate(over="ignore", invalid="ignore"):
            increase = factor * (np.exp(exponent * later) - np.exp(exponent * used))
        increase = np.where(counts & (requested(pod) > 0), increase, 0.0)
        out[:] = np.clip(np.nan_to_num(increase) * SCALE, -LARGEST, LARGEST)

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        """Give the least increase the highest score. Nodes that would be full, and nodes without metrics, score
        lowest."""
        _, _, counts = self._usage(pod, nodes)
        known = scores[counts].astype(np.float64)
        normalized = np.zeros_like(scores)
        if not len(known) or not known.any():
            return normalized
        low, high = known.min(), known.max()
        cost = MAX_NODE_SCORE * (known - low) / (high - low) if high > low else known * 0
        normalized[counts] = MAX_NODE_SCORE - cost.astype(np.int64)
        return normalized

    def _usage(self, pod: Pod, nodes: Nodes) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return percent in use, percent with the pod, and where the latter is known and at most 100."""
        used, size = self.average(CPU).of(nodes), capacity(nodes, CPU)
        total = 100 * (used / 100 * size + requested(pod))
        later = np.divide(total, size, out=total * 0, where=size > 0)
        counts: BoolArray = later <= 100
        return used, later, counts

    def _model(self, nodes: Nodes, field: str) -> FloatArray:
        def compute(some: Nodes) -> FloatArray:
            none = PowerModel()
            return np.array([getattr(self._models.get(name, none), field) for name in some.names])

        column: FloatArray = nodes.node_column((self, field), compute)
        return column

    def sign(self, pod: Pod) -> Hashable:
        return requested(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, self.usage.version)


def requested(pod: Pod) -> int:
    """Return milli-cpu; overhead counts only beside a request."""
    whole = effective(pod, CPU)
    return whole if whole > amount(pod.spec.overhead, CPU) else 0


def read_models(file: str) -> dict[str, PowerModel]:
    """Return the models of a JSON file: node → k0, k1, k2."""
    try:
        return json_text.load(Path(file).read_bytes(), f"the file {file}", dict[str, PowerModel])
    except (OSError, json_text.JsonError) as error:
        raise MoorageError(f"Cannot read the power models that ${ENVIRONMENT} names: {error}") from error
