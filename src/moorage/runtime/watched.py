"""Plugin classes that report what their constructors and hooks do, for `moorage check`.

Each class is replaced by a subclass under the same name. It passes every call on, and notes its duration in real time
and its exception.
"""

from __future__ import annotations

import functools
import inspect
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from moorage.api.failures import failure_text, is_interruption, place_of
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSpec
from moorage.framework.handle import Handle
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import EXTENSION_POINTS, Plugin
from moorage.runtime.profile import registrations
from moorage.runtime.registry import PluginError, Registry, called_hooks

BUILT_IN = "moorage."
"""The modules whose plugins are not watched: they are tested with Moorage."""

Timer = Callable[[], float]


class CallObserver(Protocol):
    """Is called around every call of a hook."""

    def before(self, args: tuple[object, ...]) -> Any:
        """Return anything that `after` needs."""

    def after(self, plugin: Plugin, hook: str, seconds: float, kept: Any, args: tuple[object, ...]) -> None:
        """Called when a hook has returned, raised or paused. `kept` is the answer of `before`."""

    def answered(self, plugin: Plugin, hook: str, answer: object) -> None:
        """Called with the answer of a hook."""


@dataclass(slots=True)
class Construction:
    """One call of a constructor."""

    profile: str
    name: str
    plugin: Plugin
    seconds: float
    error: BaseException | None

    def start_problems(self) -> Iterator[str]:
        """Return why the plugin cannot be started. Profiles stop at the first of these."""
        where = f'profile "{self.profile}"'
        if self.error is not None:
            place = place_of(self.error)
            text = f'initializing plugin "{self.name}": {failure_text(self.error)}'
            yield f"{where}: {text} ({place})" if place else f"{where}: {text}"
            return
        try:
            if any(point.refuses and isinstance(self.plugin, point.plugin) for point in EXTENSION_POINTS):
                registrations([self.plugin], extenders=False)
        except PluginError as error:
            yield f"{where}: {error}"

    def problems(self) -> Iterator[str]:
        """Return what is wrong with the plugin that was built, although its profile can be built."""
        if self.error is not None:
            return
        where = f'profile "{self.profile}": plugin "{self.name}"'
        if not hasattr(self.plugin, "handle"):
            missing = "__init__() does not call super().__init__(args, handle), so that self.handle does not exist"
            yield f"{where}: {missing}; call it first"
        if not isinstance(self.plugin, ReusablePlugin):
            return
        pod = Pod(metadata=ObjectMeta(name="pod", namespace="default"), spec=PodSpec(scheduler_name=self.profile))
        try:
            hash(self.plugin.sign(pod))
        except BaseException as error:
            if is_interruption(error):
                raise
            text = f"sign() of a plain pod must return a hashable value: {failure_text(error)}"
            yield f"{where}: {text}; return a tuple of texts and numbers"


@dataclass(slots=True)
class Watch:
    """What the watched classes note."""

    timer: Timer = time.perf_counter
    observer: CallObserver | None = None
    """None: hooks are not watched."""
    constructions: list[Construction] = field(default_factory=list)

    def registry(self, registry: Registry) -> Registry:
        """Return a registry with a watched subclass of every plugin that is not built in."""
        made = Registry()
        made.aliases, made.broken = registry.aliases, registry.broken
        for name, cls in registry.items():
            built_in = cls.__module__.startswith(BUILT_IN)
            made.add(cls if built_in else self._watched(cls), source=registry.source_of(name))
        return made

    def _watched(self, cls: type[Plugin]) -> type[Plugin]:
        def build(plugin: Plugin, args: Any, handle: Handle) -> None:
            failure: BaseException | None = None
            began = self.timer()
            try:
                cls.__init__(plugin, args, handle)
            except BaseException as error:
                if is_interruption(error):
                    raise
                failure = error
                raise
            finally:
                seconds = self.timer() - began
                self.constructions.append(Construction(handle.profile_name, cls.name, plugin, seconds, failure))

        body: dict[str, Any] = {"__init__": build, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        if self.observer is not None:
            hooks = called_hooks(cls).items()
            body |= {name: _observed(name, method, self.observer, self.timer) for name, method in hooks}
        return types.new_class(cls.__name__, (cls,), exec_body=lambda namespace: namespace.update(body))


def _observed(name: str, method: Callable[..., Any], observer: CallObserver, timer: Timer) -> Callable[..., Any]:
    @functools.wraps(method)
    def plain(plugin: Plugin, *args: Any) -> Any:
        kept, began = observer.before(args), timer()
        try:
            answer = method(plugin, *args)
        finally:
            observer.after(plugin, name, timer() - began, kept, args)
        observer.answered(plugin, name, answer)
        return answer

    @functools.wraps(method)
    async def waiting(plugin: Plugin, *args: Any) -> Any:
        kept = observer.before(args)
        note = functools.partial(observer.after, plugin, name, kept=kept, args=args)
        answer = await _steps(method(plugin, *args), timer, note)
        observer.answered(plugin, name, answer)
        return answer

    return waiting if inspect.iscoroutinefunction(method) else plain


@types.coroutine
def _steps(coro: Coroutine[Any, Any, Any], timer: Timer, note: Callable[..., None]) -> Generator[Any, Any, Any]:
    """Run a coroutine, and note the duration of each step between two pauses."""
    value: Any = None
    raised: BaseException | None = None
    while True:
        began = timer()
        try:
            paused = coro.send(value) if raised is None else coro.throw(raised)
        except StopIteration as end:
            return end.value
        finally:
            note(seconds=timer() - began)
        try:
            value, raised = (yield paused), None
        except BaseException as error:
            value, raised = None, error
