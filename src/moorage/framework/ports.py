"""The doors to the outside world: time, the API server, the event sink.

Handed in at construction. Nothing in the core reads a clock, sleeps, draws random numbers or opens a socket
by itself; that one rule is what makes virtual time, fault tests and replay from a seed possible.
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
    """Time. Two readings: `now` for durations and deadlines, `wall` for what is written into objects."""

    def now(self) -> float:
        """Seconds on a monotonic scale with an arbitrary zero."""
        ...

    def wall(self) -> float:
        """Seconds since the Unix epoch; may jump. Only for timestamps that people or the API read."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; in a test no real time passes."""
        ...

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        """Call `call(*args)` after so many seconds, unless the timer is cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One answer to a list call."""

    items: Sequence[Any]
    resource_version: str
    next_page: str = ""
    """The continue token; empty on the last page."""
    malformed: Sequence[Malformed] = ()
    """Objects that could not be read; the others are in `items`."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that was set aside because it does not have the shape of its kind."""

    key: str
    """`namespace/name` as far as it could be read."""
    error: str


ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch. An ERROR line is raised as the ApiError that it carries."""

    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK."""
    object: Any
    """The typed object; `None` for a bookmark, or a `Malformed`."""
    resource_version: str
    initial_events_end: bool = False
    """On a bookmark: all objects of the streaming list have been sent."""


class PatchType:
    """Content types of PATCH."""

    STRATEGIC = "application/strategic-merge-patch+json"
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"


class ListOptions(TypedDict, total=False):
    """What a list call may say beside the resource."""

    namespace: str
    label_selector: str
    field_selector: str
    resource_version: str
    limit: int
    page: str
    """The continue token of the page before."""


class WatchOptions(TypedDict, total=False):
    """What a watch says beside the resource."""

    resource_version: Required[str]
    namespace: str
    label_selector: str
    field_selector: str
    timeout: float | None
    send_initial_events: bool


class PatchOptions(TypedDict, total=False):
    """What a patch may say beside the object's name and the change."""

    namespace: str
    subresource: str
    patch_type: str
    """A `PatchType`; STRATEGIC unless given."""


class DeleteOptions(TypedDict, total=False):
    """What a delete may say beside the object's name; `uid` and `resource_version` are preconditions:
    Conflict when they do not hold."""

    namespace: str
    uid: str
    resource_version: str
    grace_period: int | None


Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class ApiClient(Protocol):
    """The Kubernetes API as the scheduler, the informers and plugins know it. Options are keywords.

    Every call raises an `api.errors.ApiError` for an answer that is not a success and a `TransportError`
    when there is no answer; `OutcomeUnknown` means that a write may or may not have happened. Objects are
    the typed records of `moorage.api`, or `Unstructured` for custom resources.
    """

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        """Past the informers, from the API server itself: `handle.lister` is what hooks use."""
        ...

    def watch(self, resource: Resource, **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        """Events after `resource_version`, bookmarks included. Ends quietly when the server closes it;
        raises `Gone` when the version is too old."""
        ...

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        """The object; NotFound where there is none."""
        ...

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        """POST a record or a dictionary; gives the object as it was stored."""
        ...

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        """PUT; a set resourceVersion must be the current one (Conflict otherwise)."""
        ...

    async def patch(
        self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]
    ) -> Any:
        """PATCH with the fields to change; custom resources want `patch_type=PatchType.MERGE`."""
        ...

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        """DELETE; a bound pod stays terminating until its kubelet has ended it."""
        ...

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        """POST pods/<name>/binding, with the UID as precondition."""
        ...


class DelegatingClient(ABC):
    """Implements `ApiClient` by passing calls on to another client, each after `before` has let it.

    Nothing is awaited between `before` and the call of the other client.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    @abstractmethod
    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        """Raises to stop a call. `verb` is RBAC's: list, watch, get, create, update, patch or delete; a bind
        creates the subresource `binding`."""

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

    async def patch(
        self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]
    ) -> Any:
        self.before("patch", resource, options.get("subresource", ""))
        return await self._client.patch(resource, name, patch, **options)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        self.before("delete", resource)
        await self._client.delete(resource, name, **options)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        self.before("create", PODS, "binding")
        await self._client.bind(name, namespace, uid, node)


class EventRecorder(Protocol):
    """Where events for users go. Never blocks and never raises: an event that cannot be sent is counted
    and dropped."""

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
        """`type` is Normal or Warning; `controller` is the scheduler name that reports."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """Whether the API server serves a kind: posted when it is found not to, and when that changes."""

    resource: Resource
    known: bool


@dataclass(slots=True)
class Change:
    """One delivered change of an object, as informers put it into the scheduler's inbox.

    `old` None: added. `new` None: deleted. A changed UID under one name never arrives as one change: the
    informer splits it into a delete and an add.
    """

    resource: Resource
    old: Any
    new: Any
    initial: bool = field(default=False)
    """Part of the first listing."""


class ExtenderError(Exception):
    """An extender did not answer, or not as agreed. Ends the attempt unless the extender is ignorable."""


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """Names of the nodes that pass, and the refusals with their texts."""

    names: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that would have to go from one node."""

    pods: Sequence[Pod]
    pdb_violations: int = 0


class Extender(Protocol):
    """One configured extender. The calls are the only places where a scheduling cycle suspends."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int: ...

    @property
    def ignorable(self) -> bool:
        """Its errors do not fail the pod."""
        ...

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
        """Log that scheduling goes on without the answer that failed with `error`. Throttled: an extender
        that is down fails for every pod."""
        ...

    async def filter(self, pod: Pod, nodes: Nodes) -> ExtenderFilterResult: ...

    async def prioritize(self, pod: Pod, nodes: Nodes) -> Mapping[str, int]:
        """Node → score from 0 to 10."""
        ...

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    async def bind(self, pod: Pod, node_name: str) -> None: ...

    async def close(self) -> None:
        """It will not be asked again."""
        ...
