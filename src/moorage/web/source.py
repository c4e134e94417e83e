"""What the pages ask, as protocols. `app/ui` answers from a snapshot, a running scheduler or results.

Answers are plain JSON values, in the form of /moorage/v1 and of `explain`'s `to_dict`. What cannot be
answered is a MoorageError, whose sentence the page shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueQuery:
    """Which pending pods are wanted."""

    reason: str = ""
    """The plugins that hold a pod, sorted, with commas between them."""
    place: str = ""
    """A place of the queue; with a reason, both must fit."""
    search: str = ""
    """Part of namespace/name."""
    after: str = ""
    """Only pods whose namespace/name is greater."""
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Question:
    """What would happen if."""

    manifests: str = ""
    """YAML or JSON of objects that would be applied."""
    drain: tuple[str, ...] = ()
    add_nodes: int = 0
    like: str = ""
    """What the nodes of `add_nodes` look like."""


@runtime_checkable
class ClusterSource(Protocol):
    """A cluster: one that was read, or the one that a scheduler sees."""

    title: str
    """What is looked at, for people."""
    refresh_seconds: float
    """How often the pages ask again by themselves; 0: never, because nothing changes."""

    async def summary(self) -> Json:
        """`nodes`, and `pods` by place; of a scheduler also `steps`, its attempts of the last minutes."""
        ...

    async def queue(self, query: QueueQuery) -> Json:
        """`places`, `groups` (place, reason, pods), a page of `pods`, and `after` for the next one."""
        ...

    async def pod(self, key: str) -> Json:
        """`explanation` of the present state or None, `waiting` or None, and `records` of attempts."""
        ...

    async def nodes(self) -> Json:
        """All nodes in columns: `names`, `labels` (key → values), `amounts` (resource → allocatable,
        requested and, where it is known, measured), `unschedulable`."""
        ...

    async def node(self, name: str) -> Json:
        """One node with its pods."""
        ...


@runtime_checkable
class ExplainingSource(Protocol):
    """Judges pods by itself: `pod` has an explanation."""

    async def pod_on_node(self, key: str, node: str) -> list[Json]:
        """Everything that keeps the pod from one node: plugin, code, reasons, details."""
        ...


@runtime_checkable
class RecordingSource(Protocol):
    """Keeps records of attempts: `pod` has some."""

    async def attempt(self, key: str, sequence: int) -> Json:
        """One attempt of the pod, with the names of the nodes that were refused."""
        ...


@runtime_checkable
class WhatIfSource(Protocol):
    """Can try changes on a copy."""

    async def what_if(self, question: Question) -> Json:
        """The outcome, `present` (pod → node, of those that are there now), and `explanation` of the first
        pod that would stay pending."""
        ...


@runtime_checkable
class ConfiguredSource(Protocol):
    """Knows a scheduler configuration, and can say what another one would mean."""

    async def configuration(self) -> Json:
        """`text`, completed; `profiles` with the plugins at each point; `warnings`."""
        ...

    async def check(self, text: str) -> Json:
        """`problems`, or what `configuration` has."""
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
        """`names` of configurations; `heading` and `rows` of the measures as text; `series`: measure → curves
        of `points`, each with `name` and `seed`; `failed` assertions; `differences` between placements,
        whether there are `more`, or a `note` why there are none."""
        ...


@runtime_checkable
class ObjectsSource(Protocol):
    """A cluster whose objects are the user's to change. With `read_only` everything that changes it is a
    MoorageError."""

    title: str
    refresh_seconds: float
    read_only: bool

    async def kinds(self) -> list[Json]:
        """`id`, `kind` and `apiVersion` of each."""
        ...

    async def objects(self, kind: str, search: str) -> Json:
        """`columns` as kubectl has them, `rows` with `metadata` and `cells`, and whether there are `more`."""
        ...

    async def object_text(self, kind: str, namespace: str, name: str) -> str:
        """An object as YAML."""
        ...

    async def create(self, text: str) -> list[Json]:
        """For each object of the text `object`, `result`, and whether it `failed`; of those that were made
        also `kind`, `namespace` and `name`."""
        ...

    async def save(self, opened: str, text: str) -> None:
        """`text` instead of what was `opened`, if that is still there as it was."""
        ...

    async def delete_object(self, opened: str) -> None: ...

    async def export(self, form: str) -> bytes:
        """`snapshot`, or `simulator`."""
        ...

    async def bring_in(self, content: bytes, replace: bool) -> list[Json]:
        """For each object of the file `object`, `result`, and whether it `failed`."""
        ...

    async def created(self) -> list[str]:
        """What `reset` would delete."""
        ...

    async def reset(self) -> list[Json]:
        """For each object `object`, `result`, and whether it `failed`."""
        ...


@runtime_checkable
class ReconfigurableSource(Protocol):
    """A running scheduler, whose `configuration` has also its `generation`, whether it is `writable`, and the
    `history`: number, time, origin, generation, error and needsRestart of each, newest first."""

    read_only: bool

    async def past_configuration(self, number: int) -> str:
        """The text of one of the history."""
        ...

    async def apply(self, text: str) -> Json:
        """Like one of the history; a MoorageError if the pages are read-only."""
        ...
