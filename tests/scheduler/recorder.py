"""A plugin that implements every extension point, notes each call, and gives prepared answers."""

from __future__ import annotations

from typing import Any, ClassVar

from moorage.api.resources import PODS
from moorage.framework import (
    Access,
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Status,
)

SKIP = Status.skip()


class Witness(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    """Give each test a subclass of its own (`witness()`), so that calls and answers are not shared."""

    name = "witness"
    needs = (Access(PODS, ("create",), "binding"),)
    calls: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, Any]] = {}

    def _note(self, point: str, node: str = "") -> Any:
        self.calls.append(f"{point} {node}".strip())
        answer = self.answers.get(point)
        if isinstance(answer, BaseException):
            raise answer
        return answer(node) if callable(answer) else answer

    def pre_enqueue(self, pod):
        return self._note("PreEnqueue")

    def pre_filter(self, state, pod, nodes):
        return self._note("PreFilter")

    def filter(self, state, pod, node):
        return self._note("Filter", node.name)

    def post_filter(self, state, pod, statuses):
        answer = self._note("PostFilter")
        return Status.unschedulable("nothing to do") if answer is None else answer

    def pre_score(self, state, pod, nodes):
        return self._note("PreScore")

    def score(self, state, pod, node):
        answer = self._note("Score", node.name)
        return 1 if answer is None else answer

    def normalize_scores(self, state, pod, scores):
        answer = self._note("NormalizeScore")
        return scores if answer is None else answer

    def reserve(self, state, pod, node_name):
        return self._note("Reserve", node_name)

    def unreserve(self, state, pod, node_name):
        self._note("Unreserve", node_name)

    def permit(self, state, pod, node_name):
        return self._note("Permit", node_name)

    def pre_bind_pre_flight(self, state, pod, node_name):
        return self._note("PreBindPreFlight", node_name)

    async def pre_bind(self, state, pod, node_name):
        return self._note("PreBind", node_name)

    async def bind(self, state, pod, node_name):
        answer = self._note("Bind", node_name)
        if answer is not None:
            return answer
        await self.handle.client.bind(pod.name, pod.namespace, pod.uid, node_name)
        return None

    def post_bind(self, state, pod, node_name):
        self._note("PostBind", node_name)


def witness(answers: dict[str, Any] | None = None, name: str = "witness") -> type[Witness]:
    """A fresh Witness class with its own list of calls."""
    return type("Witness", (Witness,), {"name": name, "calls": [], "answers": answers or {}})


ONLY_WITNESS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: witness}, {name: DefaultBinder}]
"""
