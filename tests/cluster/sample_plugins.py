"""Plugins of the scenarios, loaded by `module:Class` like the plugins of a user."""

from __future__ import annotations

import time

from moorage.api.pod import Pod
from moorage.api.resources import PODS, custom
from moorage.framework.access import Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import NodeView
from moorage.framework.points import BindPlugin, FilterPlugin, ScorePlugin
from moorage.framework.status import Status


class Sample(FilterPlugin):
    """Only nodes with the label cpu=true: the plugin of the tutorial."""

    name = "sample"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if node.labels.get("cpu") != "true":
            return Status.unschedulable(f"Node: {node.name}")
        return None


class Ranked(Sample, ScorePlugin):
    """The sample that prefers nodes by their label `rank`, from 0 to 100."""

    name = "ranked"

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return int(node.labels.get("rank", "0"))


class Binder(BindPlugin):
    """Binds as DefaultBinder does, in another process."""

    name = "binder"
    needs = (Access(PODS, ("create",), "binding"),)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        await self.handle.client.bind(pod.name, pod.namespace, pod.uid, node_name)
        return None


class Blocker(FilterPlugin):
    """Blocks the whole process for 20 seconds, once, for a pod that asks for it."""

    name = "blocker"
    SECONDS = 20.0

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if pod.labels.get("block") == "please" and not getattr(type(self), "done", False):
            type(self).done = True
            time.sleep(self.SECONDS)
        return None

    done = False


class ReadsSecrets(FilterPlugin):
    """Needs a right that no test grants."""

    name = "reads-secrets"
    needs = (Access(custom("", "v1", "secrets", "Secret")),)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return None
