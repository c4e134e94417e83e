"""What the pages ask, as protocols. `web.sources` answers from a snapshot, a running scheduler or results.

Clusters are answered with the types of /moorage/v1 (`endpoints.answers`), everything else with plain JSON
values. If there is no answer, the source raises a MoorageError, and the page shows its sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from moorage.endpoints.answers import (
    AttemptDetails,
    CheckedConfiguration,
    ConfigurationAnswer,
    NodeAnswer,
    PastConfiguration,
    PendingPod,
    QueueAnswer,
    SummaryAnswer,
)
from moorage.endpoints.queries import QueueQuery

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A change to try on a copy of the cluster."""

    manifests: str = ""
    """Objects to apply, as YAML or JSON."""
    drain: tuple[str, ...] = ()
    add_nodes: int = 0
    like: str = ""
    """The node that `add_nodes` copies."""


@dataclass(frozen=True, slots=True)
class PodContent:
    """A pod as the page Pod shows it."""

    explanation: Json | None = None
    """`explain`'s `to_dict` on the present state; None if the source does not judge pods itself."""
    waiting: PendingPod | None = None
    records: Sequence[AttemptDetails] = ()
    exists: bool = True
    node: str = ""
    """The node of the pod, as the scheduler knows it."""


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation on a copy of the cluster of a running scheduler."""

    explanation: Json
    """`explain`'s `to_dict`."""
    read: float
    """When the copy was read; epoch seconds."""


@dataclass(frozen=True, slots=True)
class RefusedPods:
    """Pending pods of one template that a node does not take."""

    pod: str
    """The first of them."""
    pods: int
    plugin: str
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class NodeContent:
    """A node as the page Node shows it."""

    node: NodeAnswer
    refused: Sequence[RefusedPods] = ()
    """Known for clusters that were read from a file or an API server."""


@runtime_checkable
class ClusterSource(Protocol):
    """A cluster that was read once, or the cluster of a running scheduler."""

    title: str
    """What the pages show, for people."""
    refresh_seconds: float
    """How often the pages ask again; 0 if nothing changes."""

    async def summary(self) -> SummaryAnswer:
        """Return the number of nodes, and of pods by place; of a scheduler also its recent attempts."""
        ...

    async def queue(self, query: QueueQuery) -> QueueAnswer:
        """Return the pending pods."""
        ...

    async def pod(self, key: str) -> PodContent:
        """Return one pod."""
        ...

    async def nodes(self) -> Json:
        """Return all nodes in columns: `names`, `labels` (key → values), `amounts` (resource → allocatable,
        requested and, if known, measured), `unschedulable`, `deleting`."""
        ...

    async def node(self, name: str) -> NodeContent:
        """Return one node with its pods."""
        ...


@runtime_checkable
class ExplainingSource(Protocol):
    """Judges pods by itself, so `pod` has an explanation."""

    async def pod_on_node(self, key: str, node: str) -> list[Json]:
        """Return everything that keeps the pod from a node: plugin, code, reasons, details."""
        ...


@runtime_checkable
class RecordingSource(Protocol):
    """Keeps records of attempts, so `pod` has some."""

    async def attempt(self, key: str, sequence: int) -> AttemptDetails:
        """Return one attempt of the pod, with the names of the rejected nodes."""
        ...


@runtime_checkable
class CopyingSource(Protocol):
    """Can explain a pod on a copy of the cluster, which takes longer than `pod`."""

    async def explained(self, key: str, since: float) -> Explained:
        """Return the explanation of a pod on a copy that was read after `since` (epoch seconds)."""
        ...


@runtime_checkable
class WhatIfSource(Protocol):
    """Can try changes on a copy of the cluster."""

    async def what_if(self, question: Question) -> Json:
        """Return the outcome, `present` (pod → node, for existing pods), and `explanation` of the first pod
        that would stay pending."""
        ...

    async def upgrade(self, to: str) -> Json:
        """Return what an upgrade of kube-scheduler to this version changes: `explain`'s `to_dict` of the preview."""
        ...


@runtime_checkable
class ConfiguredSource(Protocol):
    """Has a scheduler configuration, and can check another one."""

    async def configuration(self) -> ConfigurationAnswer:
        """Return the configuration in use."""
        ...

    async def check(self, text: str) -> CheckedConfiguration:
        """Return what a configuration means, or its problems."""
        ...


@runtime_checkable
class RereadSource(Protocol):
    """A cluster that was read once and can be read again."""

    async def read_again(self) -> None: ...


@runtime_checkable
class ResultsSource(Protocol):
    """Results of simulations."""

    title: str

    async def results(self) -> Json:
        """Return `names` of configurations; `heading` and `rows` of the measures as text; `series` (measure →
        curves of `points`, each with `name` and `seed`); `failed` assertions; `differences` between
        placements, whether there are `more`, or a `note` why there are none."""
        ...


@runtime_checkable
class ObjectsSource(Protocol):
    """A cluster whose objects the user may change. If it is `read_only`, every change is a MoorageError."""

    title: str
    refresh_seconds: float
    read_only: bool

    async def kinds(self) -> list[Json]:
        """Return `id`, `kind` and `apiVersion` of each kind."""
        ...

    async def objects(self, kind: str, search: str) -> Json:
        """Return `columns` as in kubectl, `rows` with `metadata` and `cells`, and whether there are `more`."""
        ...

    async def object_text(self, kind: str, namespace: str, name: str) -> str:
        """Return an object as YAML."""
        ...

    async def create(self, text: str) -> list[Json]:
        """Create the objects of a text. Returns `object`, `result` and whether it `failed` for each, and
        `kind`, `namespace` and `name` of those that were created."""
        ...

    async def save(self, opened: str, text: str) -> None:
        """Replace the object that was `opened` by `text`, unless it has changed meanwhile."""
        ...

    async def delete_object(self, opened: str) -> None: ...

    async def export(self, form: str) -> bytes:
        """Return all objects in the form `snapshot` or `simulator`."""
        ...

    async def bring_in(self, content: bytes, replace: bool) -> list[Json]:
        """Import a file. Returns `object`, `result` and whether it `failed` for each object."""
        ...

    async def created(self) -> list[str]:
        """Return the objects that `reset` would delete."""
        ...

    async def reset(self) -> list[Json]:
        """Delete the created objects. Returns `object`, `result` and whether it `failed` for each."""
        ...


@runtime_checkable
class ReconfigurableSource(Protocol):
    """A running scheduler, whose `configuration` has a generation and a history."""

    read_only: bool

    async def past_configuration(self, number: int) -> str:
        """Return the text of a configuration of the history."""
        ...

    async def apply(self, text: str) -> PastConfiguration:
        """Use a configuration. Raises a MoorageError if the pages are read-only."""
        ...
