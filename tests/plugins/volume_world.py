"""A small cluster in memory and one plugin of the default profile asked about it, in both its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.api.meta import Object
from moorage.api.pod import Pod
from moorage.api.resources import by_kind
from moorage.explain.evaluate import EvaluatedCase, default_configuration
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import Nodes
from moorage.framework.status import SUCCESS, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.filtering import filter_dense
from moorage.snapshots.files import KEYS as INPUT_KEYS
from moorage.testing import make_pod

KEYS = {resource.kind: key for key, resource in INPUT_KEYS.items()}

Verdict = dict[str, tuple[str, tuple[str, ...]]]
"""Refused node → code and reasons."""


def make_world(*objects: Object, pod: Pod | None = None, version: str = "") -> EvaluatedCase:
    data: dict[str, Any] = {"pod": msgspec.to_builtins(pod or make_pod("incoming"))}
    for obj in objects:
        kind = obj.kind or type(obj).__name__
        assert by_kind(kind) is not None
        data.setdefault(KEYS[kind], []).append(msgspec.to_builtins(obj))
    return EvaluatedCase(data, default_configuration(version))


@dataclass
class Asked:
    """The answers of one plugin for one pod."""

    plugin: Any
    pod: Pod
    state: CycleState
    pre: Status
    nodes: Nodes

    @property
    def skipped(self) -> bool:
        return self.pre.is_skip

    def together(self, nodes: Nodes | None = None) -> Verdict:
        """The vector form."""
        nodes = self.nodes if nodes is None else nodes
        if not self.pre.is_success:
            return {}
        statuses = NodeStatuses(nodes)
        _, error = filter_dense(self.plugin, self.state, self.pod, nodes, statuses)
        if not error.is_success:
            return {"": (error.code.label, error.reasons)}
        return {name: (status.code.label, status.reasons) for name, status in statuses}

    def one_by_one(self) -> Verdict:
        """The scalar form."""
        if not self.pre.is_success:
            return {}
        found = {node.name: self.plugin.filter(self.state, self.pod, node) for node in self.nodes}
        return {
            name: (status.code.label, status.reasons)
            for name, status in found.items()
            if status is not None and not status.is_success
        }


def ask(plugin: str, pod: Pod, *objects: Object, version: str = "") -> Asked:
    world = make_world(*objects, pod=pod, version=version)
    return ask_in(world, plugin, world.pod)


def ask_in(world: EvaluatedCase, plugin: str, pod: Pod) -> Asked:
    profile = next(iter(world.engine.profiles.values()))
    instance: Any = profile.plugins[plugin]
    state = CycleState()
    pre = instance.pre_filter(state, pod, world.nodes)
    return Asked(instance, pod, state, SUCCESS if pre is None else pre, world.nodes)
