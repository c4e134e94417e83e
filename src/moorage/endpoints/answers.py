"""The answers of /moorage/v1. The scheduler encodes them; `endpoints.client`, the CLI and the UI decode them.

docs/api-v1.md documents every field, and a test compares the two. Field names are camelCase on the wire.
Times are seconds since the epoch. Amounts are integers: CPU in millicores, everything else in its own unit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

PLACES = ("active", "backoff", "unschedulable", "gated", "permit", "inflight")
"""Where a pending pod can be."""
RESULTS = ("scheduled", "unschedulable", "error")
"""Results of an attempt."""
CLOSING = frozenset({"NodeUnschedulable", "TaintToleration"})
"""Plugins that reject cordoned and tainted nodes. Such a node rejects every pod without a toleration for it."""


def reason_of(plugins: Collection[str]) -> str:
    """Return the plugins by which pending pods are grouped, sorted and joined by commas.

    Plugins that reject closed nodes count only if no other plugin holds the pod: they say something about these
    nodes, and nothing about the pod.
    """
    return ",".join(sorted(set(plugins) - CLOSING or plugins))


class ApiAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all answers and their parts."""


class WakingEvents(ApiAnswer, frozen=True, kw_only=True):
    """The events after which one plugin may let an unschedulable or gated pod back into the queue."""

    plugin: str
    events: Sequence[str]


class PendingPod(ApiAnswer, frozen=True, kw_only=True):
    """A pod without a node, and where it waits. The defaults are for clusters that were read from a file."""

    pod: str
    uid: str
    profile: str
    place: str
    why: str
    message: str = ""
    plugins: Sequence[str]
    since: float | None
    until: float | None = None
    attempts: int = 0
    priority: int
    nominated_node: str
    woken_by: str = ""
    woken_hint: str = ""
    wakes: Sequence[WakingEvents] = ()


class QueueGroup(ApiAnswer, frozen=True, kw_only=True):
    """The number of pods that the same plugins hold in the same place."""

    place: str
    reason: str
    pods: int


class QueueAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The answer of /queue."""

    places: Mapping[str, int]
    groups: Sequence[QueueGroup]
    pods: Sequence[PendingPod]
    after: str | None
    connected: bool = True


class NodeCounts(ApiAnswer, frozen=True, kw_only=True):
    """How many nodes an attempt found, evaluated and kept."""

    total: int
    evaluated: int
    feasible: int


class AttemptSummary(ApiAnswer, frozen=True, kw_only=True):
    """One attempt to schedule a pod, as lists of attempts show it."""

    pod: str
    uid: str
    profile: str
    attempt: int
    sequence: int
    started: float
    duration_seconds: float
    result: str
    message: str
    nodes: NodeCounts
    node: str
    nominated_node: str
    victims: Sequence[str]
    woken_by: str
    woken_hint: str
    plugin: str


class RefusedGroup(ApiAnswer, frozen=True, kw_only=True):
    """Nodes that one plugin rejected for the same reasons."""

    plugin: str
    code: str
    reasons: Sequence[str]
    nodes: int
    node_names: Sequence[str]


class ExtenderOutcome(ApiAnswer, frozen=True, kw_only=True):
    """What one extender did when it was asked to filter."""

    extender: str
    removed_nodes: int
    error: str


class PluginPoints(ApiAnswer, frozen=True, kw_only=True):
    """The score that one plugin gave to one node."""

    plugin: str
    raw: int
    normalized: int
    weighted: int


class NodePoints(ApiAnswer, frozen=True, kw_only=True):
    """One of the best nodes, with its total score and the parts of it."""

    node: str
    total: int
    plugins: Sequence[PluginPoints]


class AttemptDetails(AttemptSummary, frozen=True, kw_only=True):
    """One attempt with everything that is on record."""

    pre_filter: str
    post_filter: str
    refusals: Sequence[RefusedGroup]
    extenders: Sequence[ExtenderOutcome]
    scores: Sequence[NodePoints]
    margin: int | None


class RefusedNode(ApiAnswer, frozen=True, kw_only=True):
    """One node that an attempt rejected."""

    node: str
    plugin: str
    code: str
    reasons: Sequence[str]


class AttemptAnswer(AttemptDetails, frozen=True, kw_only=True):
    """The answer of /attempts/SEQUENCE."""

    refused_nodes: Sequence[RefusedNode]
    after: str | None


class AttemptsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The answer of /attempts."""

    attempts: Sequence[AttemptSummary]
    before: int | None


class RecordsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The answer of /records."""

    pod: str
    exists: bool = True
    node: str = ""
    waiting: PendingPod | None
    records: Sequence[AttemptDetails]
    before: int | None


class NodeTaint(ApiAnswer, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    value: str
    effect: str


class NodeSummary(ApiAnswer, frozen=True, kw_only=True):
    """A node as the scheduler accounts for it, assumed pods included."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[NodeTaint]
    unschedulable: bool
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pod_count: int
    deleting_since: float | None = None


class NodesAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The answer of /nodes."""

    total: int
    nodes: Sequence[NodeSummary]
    after: str | None


class PodOnNode(ApiAnswer, frozen=True, kw_only=True):
    """A pod that is bound to, or assumed on, a node."""

    pod: str
    uid: str
    profile: str
    priority: int
    assumed: bool
    terminating: bool
    requests: Mapping[str, int]
    phase: str = ""
    created: float | None = None
    owner: str = ""


class ConditionOfNode(ApiAnswer, frozen=True, kw_only=True):
    """A condition that the kubelet or a controller reports for a node."""

    type: str
    status: str
    reason: str
    message: str
    since: float | None


class NodeAnswer(NodeSummary, frozen=True, kw_only=True):
    """The answer of /nodes/NAME."""

    created: float | None = None
    conditions: Sequence[ConditionOfNode] = ()
    pods: Sequence[PodOnNode]
    after: str | None


class SummaryStep(ApiAnswer, frozen=True, kw_only=True):
    """The attempts that began within one step of time."""

    from_: float = msgspec.field(name="from")
    seconds: int
    scheduled: int
    unschedulable: int
    error: int
    p50_seconds: float | None
    p99_seconds: float | None


class SummaryAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The answer of /summary. The defaults are for clusters without a running scheduler."""

    version: str = ""
    leads: bool = True
    connected: bool = True
    configuration_generation: int = 0
    profiles: Sequence[str] = ()
    nodes: int
    pods: Mapping[str, int]
    steps: Sequence[SummaryStep] | None = None


class PluginAndWeight(ApiAnswer, frozen=True, kw_only=True):
    """A plugin at an extension point; the weight matters at Score only."""

    name: str
    weight: int = 0


class ProfileDescription(ApiAnswer, frozen=True, kw_only=True):
    """A profile as it runs."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, Sequence[PluginAndWeight]]
    plugin_config: Mapping[str, Any]
    missing: Sequence[str]


class PastConfiguration(ApiAnswer, frozen=True, kw_only=True):
    """A configuration that the scheduler was given, and whether it was applied."""

    number: int
    time: float
    origin: str
    generation: int
    error: str
    needs_restart: Sequence[str]


class PastConfigurationText(PastConfiguration, frozen=True, kw_only=True):
    """The answer of /configuration/NUMBER."""

    text: str


class ConfigurationProblems(ApiAnswer, frozen=True, kw_only=True):
    """Why a configuration cannot be used; empty for one that can."""

    error: str = ""
    problems: Sequence[str] = ()


class CheckedConfiguration(ConfigurationProblems, frozen=True, kw_only=True):
    """The answer to a POST to /configuration with dryRun=All, if the configuration can be used."""

    text: str = ""
    notes: Sequence[Any] = ()
    warnings: Sequence[str] = ()
    profiles: Sequence[ProfileDescription] = ()


class ConfigurationAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The answer of /configuration. The defaults are for clusters without a running scheduler."""

    generation: int = 0
    error: str = ""
    needs_restart: Sequence[str] = ()
    writable: bool = False
    text: str
    notes: Sequence[Any]
    warnings: Sequence[str]
    profiles: Sequence[ProfileDescription]
    history: Sequence[PastConfiguration] = ()
