"""The ports of the scheduler: time, the API server, the event sink, extenders.

They are passed in at construction. Nothing in the core reads a clock, sleeps, draws random numbers or opens a
socket by itself, which makes virtual time, fault tests and replay from a seed possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Required, TypedDict, Unpack

from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.framework.nodes import Nodes


class Timer(Protocol):
    """A pending call of `Clock.call_later`."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A clock: `now` is for durations and deadlines, `wall` for times that are written into objects."""

    def now(self) -> float:
        """Return seconds on a monotonic scale with an arbitrary zero."""

    def wall(self) -> float:
        """Return seconds since the Unix epoch; it may jump. Only for timestamps in objects and logs."""

    async def sleep(self, seconds: float) -> None:
        """Wait; in a test no real time passes."""

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        """Call `call(*args)` after `seconds`, unless the timer is cancelled."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list call."""

    items: Sequence[Any]
    resource_version: str
    next_page: str = ""
    """The continue token; empty on the last page."""
    malformed: Sequence[Malformed] = ()
    """The objects that could not be decoded."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that could not be decoded."""

    key: str
    """`namespace/name`, if it could be read."""
    error: str


ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch; an ERROR line is raised as an ApiError."""

    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK."""
    object: Any
    """The typed object, a `Malformed`, or `None` for a bookmark."""
    resource_version: str
    initial_events_end: bool = False
    """Whether the streaming list ends with this bookmark."""


class PatchType:
    """Content types of PATCH."""

    STRATEGIC = "application/strategic-merge-patch+json"
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"


class ListOptions(TypedDict, total=False):
    """Options of a list call."""

    namespace: str
    label_selector: str
    field_selector: str
    resource_version: str
    limit: int
    page: str
    """The continue token of the previous page."""


class WatchOptions(TypedDict, total=False):
    """Options of a watch."""

    resource_version: Required[str]
    namespace: str
    label_selector: str
    field_selector: str
    timeout: float | None
    send_initial_events: bool


class PatchOptions(TypedDict, total=False):
    """Options of a patch."""

    namespace: str
    subresource: str
    patch_type: str
    """A `PatchType`; STRATEGIC unless given."""


class DeleteOptions(TypedDict, total=False):
    """Options of a delete; `uid` and `resource_version` are preconditions (Conflict otherwise)."""

    namespace: str
    uid: str
    resource_version: str
    grace_period: int | None


Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class ApiClient(Protocol):
    """A client of the Kubernetes API.

    Every call raises an `api.errors.ApiError` for an unsuccessful answer and a `TransportError` if there is
    no answer; `OutcomeUnknown` means that a write may or may not have happened. Objects are the typed records
    of `moorage.api`, or `Unstructured` for custom resources.
    """

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        """List objects from the API server. Hooks use `handle.lister` instead, which reads the informers."""

    def watch(self, resource: Resource, **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        """Yield the events after `resource_version`, including bookmarks, until the server ends the watch.
        Raises `Gone` if the version is too old."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        """Return the object; raises NotFound."""

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        """POST a record or a dictionary; return the stored object."""

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        """PUT; a resourceVersion, if set, must be the current one (Conflict otherwise)."""

    async def patch(self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]) -> Any:
        """PATCH with the fields to change; custom resources need `patch_type=PatchType.MERGE`."""

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        """DELETE; a bound pod stays terminating until its kubelet has stopped it."""

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """POST pods/<name>/binding, with the UID as precondition."""


class DelegatingClient(ABC):
    """An `ApiClient` that calls `before` and then passes the call on to another client, without an await
    between the two."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    @abstractmethod
    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        """Raise to stop a call. `verb` is that of RBAC: list, watch, get, create, update, patch or delete;
        a bind creates the subresource `binding`."""

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        self.before("list", resource)
        return await self._client.list(resource, **options)

    def watch(self, resource: Resource, **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        self.before("watch", resource)
        return self._client.watch(resource, **options)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        self.before("get", resource)
        return await self._client.get(resource, name, namespace)

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        self.before("create", resource)
        return await self._client.create(resource, obj, dry_run=dry_run)

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        self.before("update", resource, subresource)
        return await self._client.replace(resource, obj, subresource=subresource)

    async def patch(self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]) -> Any:
        self.before("patch", resource, options.get("subresource", ""))
        return await self._client.patch(resource, name, patch, **options)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        self.before("delete", resource)
        await self._client.delete(resource, name, **options)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        self.before("create", PODS, "binding")
        await self._client.bind(name, namespace, uid, node)


class EventRecorder(Protocol):
    """Sends events to users. It never blocks and never raises; an event that cannot be sent is counted and dropped."""

    def event(
        self,
        regarding: Any,
        *,
        type: str,  # noqa: A002 (the field's name in the API)
        reason: str,
        action: str,
        note: str,
        related: Any = None,
        controller: str = "",
    ) -> None:
        """Send an event. `type` is Normal or Warning; `controller` is the reporting scheduler name."""


@dataclass(frozen=True, slots=True)
class Served:
    """Whether the API server serves a kind; posted if it does not, and when that changes."""

    resource: Resource
    known: bool


@dataclass(slots=True)
class Change:
    """One change of an object, as informers post it to the scheduler's inbox. `old` is None for an added object, `new`
    for a deleted one. An object that was recreated under its name arrives as a delete and an add."""

    resource: Resource
    old: Any
    new: Any
    initial: bool = field(default=False)
    """Part of the first listing."""


class ExtenderError(Exception):
    """An extender failed or answered wrongly. It ends the attempt unless the extender is ignorable."""


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """The names of the nodes that pass, and the refused nodes with their reasons."""

    names: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victims:
    """The victims on one node."""

    pods: Sequence[Pod]
    pdb_violations: int = 0


class Extender(Protocol):
    """One configured extender webhook (pkg/scheduler/extender.go). Only its calls suspend a scheduling cycle."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int: ...

    @property
    def ignorable(self) -> bool:
        """Whether its errors are ignored."""

    @property
    def filters(self) -> bool: ...

    @property
    def prioritizes(self) -> bool: ...

    @property
    def preempts(self) -> bool: ...

    @property
    def binds(self) -> bool: ...

    def is_interested(self, pod: Pod) -> bool: ...

    def warn(self, error: Exception) -> None:
        """Log that scheduling continues without this extender. Throttled, because an extender that is down
        fails for every pod."""

    async def filter(self, pod: Pod, nodes: Nodes) -> ExtenderFilterResult: ...

    async def prioritize(self, pod: Pod, nodes: Nodes) -> Mapping[str, int]:
        """Return a score from 0 to 10 for each node."""

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    async def bind(self, pod: Pod, node_name: str) -> None: ...

    async def close(self) -> None:
        """Close the connection; the extender is not called again."""
