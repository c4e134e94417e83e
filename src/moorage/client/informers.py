"""Informers: one resource each, mirrored from the API server and delivered as changes; and the set of them.

The list and watch loop is in `reflector`. Storing the objects in the form the scheduler reads, and drawing
conclusions from a change, is left to the receiver of the deliveries.

One rule for objects that cannot be read (a wrong type in a field, a quantity that is none): **a malformed
version is no version.** An object never seen in readable form is set aside; a known one keeps its last good
version until a readable one arrives or the object goes. Treating it as deleted would free the capacity of a
pod that still runs, and drain a node from view over a typo in an annotation; a pending pod bound on its last
good version is still protected by the UID precondition of the binding."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from moorage.api import decoding
from moorage.api.errors import Forbidden, MoorageError, ObjectError
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.client.reflector import Reflector
from moorage.framework.ports import ADDED, DELETED, MODIFIED, ApiClient, Change, Clock, Malformed, Served, WatchEvent
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle

log = logs.get(__name__)

OnMalformed = Callable[[Resource, Malformed], None]
"""Called with each new unreadable version, for metrics."""

OnServed = Callable[[Served], None]
"""Called when the API server does not serve a kind, and when it does again."""

OnRewind = Callable[[Resource], None]
"""Called when the server has lost changes that it had sent, with the kind whose version showed it; for metrics."""

Backlog = Callable[[], int]
"""How many delivered changes the receiver has not looked at yet."""

FIELD_SELECTORS = {PODS: "status.phase!=Succeeded,status.phase!=Failed"}
"""Finished pods hold nothing: one that ends leaves the selection, and so arrives as a delete."""
_LOOK = 0.02
"""Seconds between two looks at informers that have not synced."""
RELIST_SECONDS = 10.0
"""How long the pods of a restored server wait for the other kinds."""
SLICE = 500
"""Objects of a listing delivered before the loop gets a turn."""


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """One informer as health checks and operators see it."""

    resource: Resource
    synced: bool
    version: str
    is_current: bool
    """Whether it has been as new as the moment at which its listing began."""
    count: int
    malformed: int
    last_error: str
    held_up: float
    """Seconds, all in all, for which reading has stopped because the receiver had fallen behind."""


class Informer:
    """Keeps a mirror of one resource and delivers every change to it, in order.

    `deliver` is called on the loop and must return soon: the scheduler's inbox only appends.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        deliver: Deliver,
        *,
        clock: Clock,
        random: Random,
        field_selector: str = "",
        label_selector: str = "",
        page_size: int = 500,
        use_streaming_list: bool = False,
        on_malformed: OnMalformed | None = None,
        on_served: OnServed | None = None,
        on_rewind: Callable[[str, str], Awaitable[None]] | None = None,
        backlog: Backlog = lambda: 0,
    ) -> None:
        """`on_rewind` is called with the version seen before and the lower one that the server is at now. The listing
        at the lower one is delivered when it returns."""
        self.resource = resource
        self.synced = asyncio.Event()
        """Set once the first complete listing has been delivered; never cleared."""
        self._mirror = Mirror(resource, deliver, self._set_aside)
        self._on_malformed = on_malformed
        self._on_served = on_served
        self._on_rewind = on_rewind
        self._complaints = Throttle(clock.now)
        self._reflector = Reflector(
            client,
            resource,
            self,
            clock=clock,
            random=random,
            field_selector=field_selector,
            label_selector=label_selector,
            page_size=page_size,
            use_streaming_list=use_streaming_list,
            backlog=backlog,
        )

    @property
    def malformed(self) -> dict[str, str]:
        """Key → error of the objects whose current version cannot be used."""
        return self._mirror.malformed

    @property
    def objects(self) -> dict[str, Any]:
        """Key → object as last delivered. To be read only."""
        return self._mirror.objects

    async def run(self) -> None:
        """Follows the resource until cancelled; no failure ends it."""
        await self._reflector.run()

    def status(self) -> InformerStatus:
        return InformerStatus(
            resource=self.resource,
            synced=self.synced.is_set(),
            version=self._reflector.version,
            is_current=self._reflector.is_current,
            count=len(self._mirror.objects),
            malformed=len(self._mirror.malformed),
            last_error=self._reflector.last_error,
            held_up=self._reflector.held_up,
        )

    def serve(self, known: bool) -> None:
        """The reflector's word on whether the server has the kind."""
        if self._on_served is not None:
            self._on_served(Served(self.resource, known))

    @property
    def is_cut_off(self) -> bool:
        """Whether it waits to reach the server again."""
        return self._reflector.is_cut_off

    def wake(self) -> None:
        """The server has answered another request: stop waiting for it."""
        self._reflector.wake()

    def relist(self) -> None:
        """Replace everything by the state of a server that has another history, as after a restored backup."""
        self._mirror.rewound = True
        self._reflector.relist()

    @property
    def is_relisting(self) -> bool:
        """Whether the listing after `relist` is not complete yet."""
        return self._reflector.relisting

    async def rewound(self, seen: str, found: str) -> None:
        """The reflector's word that the listing which follows is from another history."""
        self._mirror.rewound = True
        if self._on_rewind is not None:
            await self._on_rewind(seen, found)

    def preview(self, obj: Any) -> None:
        """Delivered at once in the first listing: the server is still sending the rest."""
        if not self.synced.is_set():
            self._mirror.preview(obj)

    async def replace(self, items: Sequence[Any]) -> None:
        """The reflector's listing."""
        for position, _ in enumerate(self._mirror.replace(items, initial=not self.synced.is_set()), 1):
            if position % SLICE == 0:
                await asyncio.sleep(0)
        self.synced.set()

    def apply(self, event: WatchEvent) -> None:
        """The reflector's event."""
        self._mirror.apply(event)

    def accepts(self, event: WatchEvent) -> bool:
        """Whether an event is of a known type and about this kind; another one is logged."""
        known = event.type in (ADDED, MODIFIED, DELETED)
        if known and isinstance(event.object, (self.resource.type, Malformed)):
            return True
        if self._complaints.admits():
            found = getattr(event.object, "kind", type(event.object).__name__)
            log.warning("Ignored a watch event", resource=self.resource, type=event.type, object=found)
        return False

    def _set_aside(self, problem: Malformed) -> None:
        if self._on_malformed is not None:
            self._on_malformed(self.resource, problem)
        if self._complaints.admits():
            log.error(
                "Object ignored until it can be read",
                problem.error,
                resource=self.resource,
                object=problem.key,
                suppressed=self._complaints.take_suppressed(),
            )


class InformerSet:
    """One informer for each resource: two of one kind would disagree about the present."""

    def __init__(
        self,
        client: ApiClient,
        deliver: Deliver,
        clock: Clock,
        random: Random,
        resources: Iterable[Resource],
        *,
        use_streaming_list: bool = False,
        on_malformed: OnMalformed | None = None,
        on_served: OnServed | None = None,
        on_rewind: OnRewind | None = None,
        backlog: Backlog = lambda: 0,
    ) -> None:
        def informer(resource: Resource) -> Informer:
            return Informer(
                client,
                resource,
                deliver,
                clock=clock,
                random=random,
                field_selector=FIELD_SELECTORS.get(resource, ""),
                use_streaming_list=use_streaming_list,
                on_malformed=on_malformed,
                on_served=on_served,
                on_rewind=lambda seen, found: self._listed_lower(resource, seen, found),
                backlog=backlog,
            )

        self._client = client
        self._clock = clock
        self._on_rewind = on_rewind
        self._make = informer
        self.informers = {resource: informer(resource) for resource in dict.fromkeys(resources)}
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        """Set while they run."""

    async def run(self) -> None:
        """Runs all informers as tasks, until cancelled or stopped."""
        async with asyncio.TaskGroup() as self._group:
            for resource in self.informers:
                self._start(resource)

    def _start(self, resource: Resource) -> None:
        if self._group is not None:
            run = self.informers[resource].run()
            self._tasks[resource] = self._group.create_task(run, name=f"informer {resource}")

    async def extend(self, resources: Iterable[Resource], patience: float = 10.0) -> None:
        """Informers for kinds that have none yet; returns when these have synced. A MoorageError when one may
        not or does not within `patience` seconds, and then none of them stays. What a set once follows it
        follows until it stops."""
        new = [resource for resource in dict.fromkeys(resources) if resource not in self.informers]
        for resource in new:
            await self._must_list(resource)
        self.informers.update({resource: self._make(resource) for resource in new})
        for resource in new:
            self._start(resource)
        deadline = self._clock.now() + patience
        while late := [resource for resource in new if not self.informers[resource].synced.is_set()]:
            if self._clock.now() >= deadline:
                why = f"{late[0]} could not be listed: {self.informers[late[0]].status().last_error}"
                for resource in new:
                    del self.informers[resource]
                    self._tasks.pop(resource).cancel()
                raise MoorageError(why)
            await self._clock.sleep(_LOOK)

    async def _must_list(self, resource: Resource) -> None:
        try:
            await self._client.list(resource, limit=1)
        except Forbidden as error:
            raise MoorageError(
                f"{resource} may not be listed: {error}; grant list and watch of it to the scheduler "
                "(`moorage manifests` prints the rights of a configuration)"
            ) from error
        except MoorageError:
            return  # its informer knows what to do

    @property
    def is_cut_off(self) -> bool:
        """Whether an informer waits to reach the server again."""
        return any(informer.is_cut_off for informer in self.informers.values())

    def wake(self) -> None:
        """The server has answered: informers that wait to reach it try again at once."""
        for informer in self.informers.values():
            informer.wake()

    def rewound(self, resource: Resource, seen: str, found: str, besides: Resource | None = None) -> None:
        """Replace all mirrors: the server is at version `found` although `seen` came before. `besides` does so
        already.

        Pods come last, so that they are not scheduled on nodes that are gone.
        """
        log.error(
            "The API server has lost changes that it had sent, as after a restored backup; listing everything again",
            resource=resource,
            seen=seen,
            found=found,
        )
        if self._on_rewind is not None:
            self._on_rewind(resource)
        for other, informer in self.informers.items():
            if other not in (besides, PODS):
                informer.relist()
        if self._group is not None and besides != PODS and PODS in self.informers:
            self._group.create_task(self._relist_pods(), name="relist pods")

    async def _relist_pods(self) -> None:
        await self._others_listed()
        self.informers[PODS].relist()

    async def _others_listed(self) -> None:
        deadline = self._clock.now() + RELIST_SECONDS
        while self._clock.now() < deadline and any(informer.is_relisting for informer in self.informers.values()):
            await self._clock.sleep(_LOOK)

    async def _listed_lower(self, resource: Resource, seen: str, found: str) -> None:
        """An informer has read a listing from another history, and delivers it when this returns."""
        self.rewound(resource, seen, found, besides=resource)
        if resource == PODS:
            await self._others_listed()

    async def wait_synced(self) -> None:
        """Returns when every informer has delivered its first listing."""
        for informer in self.informers.values():
            await informer.synced.wait()

    def status(self) -> list[InformerStatus]:
        return [informer.status() for informer in self.informers.values()]

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


Deliver = Callable[[Change], None]


class Mirror:
    """Key → object as last delivered. Identity on the wire is namespace/name; a changed UID is split here."""

    def __init__(self, resource: Resource, deliver: Deliver, on_malformed: Callable[[Malformed], None]) -> None:
        self.resource = resource
        self.objects: dict[str, Any] = {}
        self.malformed: dict[str, str] = {}
        """Key → why the current version on the server cannot be used."""
        self.rewound = False
        """Whether the next listing is from another history. Its versions may be lower, or be those of other states;
        and a pending pod may have been bound in a version that is lost, so it begins anew."""
        self._deliver = deliver
        self._on_malformed = on_malformed

    def check(self, obj: Any) -> Malformed | None:
        """Why an object of a list or watch cannot be used; None when it can."""
        if isinstance(obj, Malformed):
            return obj
        try:
            decoding.check_identity(self.resource, obj)
            decoding.validate(obj)
        except ObjectError as error:
            return Malformed(obj.key, str(error))
        return None

    def apply(self, event: WatchEvent) -> None:
        """One ADDED, MODIFIED or DELETED; which of the first two does not matter, nor does a repetition."""
        obj = event.object
        if event.type == DELETED:
            self._delete(obj)
        else:
            self._take(obj)

    def replace(self, items: Iterable[Any], initial: bool) -> Iterator[None]:
        """Takes over a complete listing, pausing after each object so that the caller can yield to the loop.

        What is missing was deleted unseen: it is delivered as a delete with the last known version.
        """
        present = set()
        for obj in items:
            present.add(obj.key)
            if self.objects.get(obj.key) is not obj:
                self._take(obj, initial)
            yield
        for key in [key for key in self.objects if key not in present]:
            self._remove(key)
            yield
        self.malformed = {key: error for key, error in self.malformed.items() if key in present}
        self.rewound = False

    def preview(self, obj: Any) -> None:
        """One object of a first listing that `replace` will complete."""
        self._take(obj, initial=True)

    def _take(self, obj: Any, initial: bool = False) -> None:
        if problem := self.check(obj):
            self._set_aside(problem, obj)
        else:
            self._put(obj, initial)

    def _put(self, new: Any, initial: bool = False) -> None:
        key = new.key
        old = self.objects.get(key)
        self.malformed.pop(key, None)
        if old is not None and (old.uid != new.uid or (self.rewound and _begins_anew(old, new))):
            self._remove(key)
            old = None
        if old is None or not _same_version(old, new):
            self._deliver(Change(self.resource, old, new, initial))
        # Noted only once delivered: if that fails, the next listing repeats it.
        self.objects[key] = new

    def _delete(self, last: Any) -> None:
        """A DELETED event. It carries the final state, which is what is delivered if it can be read."""
        key = last.key
        known = self.objects.get(key)
        if known is None or key in self.malformed or self.check(last):
            self._remove(key)
        elif last.uid == known.uid:
            self._remove(key, last)
        # Otherwise it repeats the end of an earlier object of that name.

    def _remove(self, key: str, last: Any = None) -> None:
        self.malformed.pop(key, None)
        known = self.objects.get(key)
        if known is not None:
            self._deliver(Change(self.resource, last or known, None))
            del self.objects[key]

    def _set_aside(self, problem: Malformed, obj: Any = None) -> None:
        known = self.objects.get(problem.key)
        if known is not None and getattr(obj, "uid", known.uid) != known.uid:
            self._remove(problem.key)
        if self.malformed.get(problem.key) != problem.error:
            self._on_malformed(problem)
        self.malformed[problem.key] = problem.error


def _begins_anew(old: Any, new: Any) -> bool:
    """Of one object before and after a rewind: whether nothing that was concluded from `old` may be kept."""
    if isinstance(new, Pod) and not old.is_assigned and not new.is_assigned:
        return True
    return _same_version(old, new) and old != new


def _same_version(old: Any, new: Any) -> bool:
    """Versions of one UID are unique, so equal ones need no comparison of the objects."""
    return bool(new.resource_version) and old.resource_version == new.resource_version
