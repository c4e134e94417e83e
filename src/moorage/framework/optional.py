"""Optional base classes, inherited beside the extension points: answers for all nodes in one call, answers
that are reused for later pods, and details and remedies for a refusal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.framework._contract import derived, missing, required
from moorage.framework.access import Dependency
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.points import FilterPlugin, Plugin, ScorePlugin
from moorage.framework.status import Status, gravest

# All nodes at once


class VectorFilterPlugin(FilterPlugin):
    """Can the pod run there? Asked about all nodes in one call, on NumPy columns.

    `filter` is derived from `filter_nodes`; the runtime calls whichever it needs (a dry run looks at single
    nodes). A plugin may define both if a scalar `filter` is faster for one node; then they must agree.
    """

    @required
    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        """`nodes` holds the nodes that all earlier filters kept. Return `nodes.refuse(mask, reason)`, or
        `nodes.refusals()` with several reasons and codes added. `None` keeps all nodes."""
        raise missing(self, "filter_nodes")

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        answer = self.filter_nodes(state, pod, node.alone())
        return None if answer is None else first_refusal(answer)


def first_refusal(refusals: Refusals) -> Status | None:
    """Return the status of the first node of an answer; None if the node is kept."""
    hits = [entry for entry in refusals.entries if entry.mask[0]]
    if not hits:
        return None
    reasons = tuple(text for text in (entry.text(0) for entry in hits) if text)
    return Status(gravest(entry.code for entry in hits), reasons)


class VectorScorePlugin(ScorePlugin):
    """How good is the node? Asked about all feasible nodes in one call; `score` is derived."""

    @required
    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """Return an array of int64 or float64 with one entry per node of `nodes` (the feasible ones), or a Status."""
        raise missing(self, "score_nodes")

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> float | Status:
        answer = self.score_nodes(state, pod, node.alone())
        return answer if isinstance(answer, Status) else int(answer[0])

    @derived
    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        """Scale the scores of all feasible nodes into 0-100; return an array or a Status. It replaces
        `normalize_scores`. Do not override it if the scores are in 0-100 already, or if the plugin declares
        `normalization`."""
        return scores


# Reuse


class ReusablePlugin(Plugin):
    """A plugin whose answers may be reused for later pods.

    Most pods share a template with other pods. `sign` says which pods are equal to the plugin, and `reads`
    says what must not have changed for an answer to hold. The answer for one pod is then reused for the next
    pod, and only changed nodes are judged again. Reuse makes the scheduler faster and changes no answer;
    `moorage.testing.Cluster(verify_reuse=True)` detects a `sign` or `reads` that leaves something out.
    """

    few_signs: ClassVar[bool] = False
    """Set it if `sign` takes few different values, however different the pods are (tolerations and node
    selectors do; labels and requests do not). If `reads` names only NODE, NODE_COUNT, kinds and versions,
    the answers about nodes are then reused for all pods with an equal sign, until a node changes."""

    @derived
    def sign(self, pod: Pod) -> Hashable:
        """Return everything that this plugin reads of the pod, as a hashable value. Pods with equal signatures share
        the answers of hints, and answers about nodes if `reads` is defined too. `None` (the default): unknown, so hints
        are shared by equal namespace, labels, owner and spec, and answers about nodes are not reused."""
        return None

    @derived
    def reads(self, pod: Pod) -> Collection[Dependency] | None:
        """Return what the answer depends on besides the pod: members of `Reads`, `Kind(resource)`, or a `Version` that
        the plugin owns. Preemption uses it as well: a filter that does not depend on pods is not called again for each
        victim. `None` (the default): unknown, so answers about nodes are not reused."""
        return None


def reads_of(plugin: Plugin, pod: Pod) -> Collection[Dependency] | None:
    """Return what a plugin's answers about this pod depend on; `None` if unknown."""
    return plugin.reads(pod) if isinstance(plugin, ReusablePlugin) else None


# Explanations

Figure = int | str | None
"""An amount in the detail's unit, or a text."""


NO_LABEL = "no label"
"""What a node has if it lacks the label that the pod asks for."""

_MAX_PODS = 5


class Detail(NamedTuple):
    """One obstacle that keeps a pod off a node. Nodes with the same subject are shown in one line with the
    range of what is missing, so put figures into the other fields."""

    subject: str
    """What it is about: `cpu`, `taint gpu=true:NoSchedule`, `port TCP/80`, a short form of a term."""
    asked: Figure = None
    """What the pod requests, or the limit that applies."""
    there: Figure = None
    """What the node has for it, or how much of the limit is used."""
    missing: int | None = None
    """How much would have to change for the pod to fit, if that is a number."""
    unit: str = ""
    pods: tuple[str, ...] = ()
    """A few of the pods that are in the way, as namespace/name."""


ObjectChange = tuple[Resource, Any, Any]
"""A kind, the object as it is, and the object as it would be; None stands for an object that is absent."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change to the pod or to the cluster that might make a plugin accept a node."""

    key: str
    """Equal for the same proposal about another node; only the best of them is shown."""
    text: str
    """An instruction for the user that continues a sentence: "tolerate taint gpu=true:NoSchedule"."""
    cost: int
    """How much it asks of the user, from 1 (uncordon) to 9 (raise the priority); cheaper ones come first."""
    relax: Callable[[Pod], Pod] | None = None
    """Returns the changed pod. It may get a pod that other proposals have changed already."""
    changes: tuple[ObjectChange, ...] = ()
    """Objects of the cluster that would be different."""
    size: float = 0.0
    """Among proposals with equal keys the smallest is the best."""
    command: str = ""
    """What the user copies to apply `changes`, usually a kubectl command (`moorage.api.kubectl` quotes names).
    Without it, `moorage explain` derives a patch from `changes`, and YAML from `relax`."""


def deletion(pod: Pod, node: NodeView, size: float = 0.0) -> Proposal:
    """Propose to delete a pod that is in the way on a node. Less important pods come first, then those with
    a smaller `size`."""
    text = f"delete pod {pod.key} on node {node.name}"
    return Proposal("delete a pod", text, 7, changes=((PODS, pod, None),), size=pod.priority * 1e12 + size)


class ExplainingPlugin(Plugin):
    """A plugin that can say more about its refusals than the reason.

    A reason is written for an event: short, and the same for many nodes. `moorage explain` also asks for
    details and remedies, after the attempt and never while pods are being scheduled.
    """

    @required
    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Detail]:
        """Return why this plugin refuses the pod on the node, one entry per obstacle. Called after PreFilter, with its
        state, for nodes that Filter has refused. If it raises, the error is shown in place of the details."""
        raise missing(self, "explain")

    @derived
    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Proposal]:
        """Return changes that might make this plugin accept the pod on the node, the mildest first. Called
        with the same arguments as `explain`. Each proposal is tried on a copy of the cluster, and only those
        that work are shown. If it raises, the plugin is named and skipped."""
        return ()

    @derived
    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterable[str]:
        """Return what decides about the pod as a whole, as sentences: "No node offers example.com/fpga." Called once,
        after PreFilter, if no node is feasible and this plugin alone refuses one or refuses most; `nodes` are all
        nodes. If it raises, the error is shown."""
        return ()


def a_few(pods: Iterable[Pod]) -> tuple[str, ...]:
    """Return the keys of the first pods, for `Detail.pods`."""
    return tuple(pod.key for pod in islice(pods, _MAX_PODS))
