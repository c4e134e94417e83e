"""An asyncio event loop in virtual time. A seed can decide the order of events.

Time stands still while anything can run and then jumps to the next timer, so hours pass in milliseconds. Ready
callbacks run in order of arrival or, with a seed, in an order drawn from it. The same seed gives the same run, another
seed another interleaving of the same program.

Nothing real can be awaited here: no socket, no thread, no executor, no signal. A program that waits for something that
can no longer happen is reported as a Deadlock, a program that spins without time passing as a Livelock. Tasks hash by
their number, because asyncio keeps them in sets, whose order would otherwise depend on memory addresses.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from moorage.api.errors import MoorageError
from moorage.framework.ports import Timer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_SPIN_LIMIT = 10_000_000
_FIRST_LOOK = 256  # callbacks at one instant before a check; doubled after each check
_FINALIZER_TURNS = 3  # the finalizer of an async generator creates a task that closes the generator
_COMPACT_ABOVE = 100  # cancelled timers; fewer are cheaper to drop when they come up

_REAL_WORLD = (
    "run_in_executor", "create_connection", "create_server", "create_unix_connection",
    "create_unix_server", "create_datagram_endpoint", "getaddrinfo", "getnameinfo", "sock_connect",
    "sock_accept", "sock_recv", "sock_sendall", "add_reader", "add_writer", "subprocess_exec",
    "subprocess_shell",
)  # fmt: skip
"""Methods of a loop that reach outside the process. They would fail without a clear message or wait forever."""


class SimulationError(MoorageError):
    """The simulated program cannot continue."""


class Deadlock(SimulationError):
    """Every task waits and no timer is left. The message lists the waiting tasks."""


class Livelock(SimulationError):
    """Callbacks keep following each other while virtual time stands still."""


class OutOfTime(SimulationError):
    """The next event is beyond the time limit of the run."""


class _Task(asyncio.Task[Any]):
    """A task that hashes by its number."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, number: int, **options: Any) -> None:
        self.number = number  # first, because the base class puts the new task into a set
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """The event loop. With a `seed` of None, callbacks run in order of arrival. Time must not pass `until`."""

    # Attributes of the base class that it does not declare to type checkers.
    _ready: deque[asyncio.Handle]
    _scheduled: list[tuple[float, int, asyncio.TimerHandle]]
    _timer_cancelled_count: int

    def __init__(
        self, seed: int | str | None = None, *, until: float | None = None, spin_limit: int = _SPIN_LIMIT
    ) -> None:
        super().__init__()
        self.until = until
        self.failures: list[BaseException] = []
        """Exceptions of callbacks and of tasks that were never awaited, in order."""
        self._random = None if seed is None else random.Random(seed)
        self._now = 0.0
        self._spins = 0
        self._spin_limit = spin_limit
        self._look_at = min(_FIRST_LOOK, spin_limit + 1)
        self.on_standstill: Callable[[], None] | None = None
        """Called repeatedly while many callbacks run at one instant. It may raise."""
        self.on_move: Callable[[float], None] | None = None
        """Called before time moves, with the new time."""
        self._orders = count()
        self._task_numbers = count(1)
        self.set_task_factory(_make_task)
        self.set_exception_handler(_keep_failure)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def block(self, seconds: float) -> None:
        """Let virtual time pass within a callback, as code that blocks the loop does. Due timers run afterwards."""
        self._now += seconds

    @property
    def progress(self) -> tuple[float, int]:
        """Return a value that differs from callback to callback."""
        return self._now, self._spins

    def next_task_number(self) -> int:
        return next(self._task_numbers)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        # Timers of one instant keep the order of arrival. Tuples are compared in C.
        heapq.heappush(self._scheduled, (when, next(self._orders), timer))
        timer._scheduled = True  # type: ignore[attr-defined]  # makes the base class count its cancellation
        return timer

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self.is_running() and threading.get_ident() != self._thread_id:  # type: ignore[attr-defined]
            raise SimulationError("A thread called into the virtual loop; virtual time has no threads.")
        return self.call_soon(callback, *args, context=context)

    def waiting(self) -> list[asyncio.Task[Any]]:
        """Return the unfinished tasks, oldest first."""
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, _Task)]
        return [*sorted(tasks, key=lambda task: task.number)]

    def wind_down(self) -> None:
        """Remove the time limit and the seed, and let pending finalizers run."""
        self.until = None
        self._random = None
        for _ in range(_FINALIZER_TURNS):
            self.run_until_complete(asyncio.sleep(0))

    def _run_once(self) -> None:
        """Run one callback, moving time to it if none is ready. The base class calls this in a loop."""
        # Simulations get here ten times per pod, so rare work is not done by calls.
        ready, scheduled = self._ready, self._scheduled
        if not ready:
            self._move_time()
            scheduled = self._scheduled
        if scheduled and scheduled[0][0] <= self._now:
            self._move_due_timers()
        self._spins += 1
        if self._spins >= self._look_at:
            self._look()
        handle = ready.popleft() if self._random is None else self._pick(self._random)
        if not handle.cancelled():
            handle._run()

    def _look(self) -> None:
        """Check for a livelock after many callbacks at this instant."""
        self._look_at = min(2 * self._look_at, self._spin_limit + 1)
        if self.on_standstill is not None:
            self.on_standstill()
        if self._spins > self._spin_limit:
            self._spins = 0  # so that the clean-up can still run
            at = f"{self._spin_limit} callbacks ran at virtual second {self._now:g}"
            raise Livelock(f"{at}; waiting:{self._report()}")

    def _pick(self, draw: random.Random) -> asyncio.Handle:
        ready = self._ready
        if len(ready) > 1:
            chosen = draw.randrange(len(ready))
            ready[0], ready[chosen] = ready[chosen], ready[0]
        return ready.popleft()

    def _move_time(self) -> None:
        self._drop_cancelled_timers()
        if not self._scheduled:
            raise Deadlock(f"nothing is left to happen at virtual second {self._now:g}:{self._report()}")
        when = self._scheduled[0][0]
        if self.until is not None and when > self.until:
            raise OutOfTime(f"nothing ends before virtual second {self.until:g}:{self._report()}")
        if when > self._now:
            if self.on_move is not None:
                self.on_move(when)
            self._now = when
            self._spins = 0
            self._look_at = min(_FIRST_LOOK, self._spin_limit + 1)

    def _move_due_timers(self) -> None:
        while self._scheduled and self._scheduled[0][0] <= self._now:
            timer = heapq.heappop(self._scheduled)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if not timer.cancelled():
                self._ready.append(timer)
            else:
                self._timer_cancelled_count -= 1

    def _drop_cancelled_timers(self) -> None:
        """Drop cancelled timers, so that they neither move time nor pile up."""
        if self._timer_cancelled_count > max(_COMPACT_ABOVE, len(self._scheduled) // 2):
            self._scheduled = [entry for entry in self._scheduled if not entry[2].cancelled()]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0
        while self._scheduled and self._scheduled[0][2].cancelled():
            heapq.heappop(self._scheduled)
            self._timer_cancelled_count -= 1

    def _report(self) -> str:
        lines = [f"\n  {task.get_name()}: {_place(task)}" for task in self.waiting()]
        return "".join(lines) or " no task waits"


def run(coro: Coroutine[Any, Any, T], *, seed: int | str | None = None, timeout_virtual: float | None = None) -> T:
    """Run a coroutine to its end on a new VirtualLoop, then cancel the remaining tasks and close the loop.

    Failures that were never awaited are raised as an ExceptionGroup if `coro` itself succeeds.
    """
    loop = VirtualLoop(seed, until=timeout_virtual)
    try:
        asyncio.set_event_loop(loop)
        result = loop.run_until_complete(coro)
    finally:
        try:
            finish(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()
    if loop.failures:
        raise BaseExceptionGroup("failures that were never awaited", loop.failures)
    return result


def finish(loop: VirtualLoop) -> None:
    """Cancel the remaining tasks and close abandoned generators, waiting for their clean-up."""
    loop.wind_down()
    leftovers = loop.waiting()
    for task in leftovers:
        task.cancel()
    if leftovers:
        loop.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
    loop.failures += [e for t in leftovers if not t.cancelled() and (e := t.exception()) is not None]
    loop.run_until_complete(loop.shutdown_asyncgens())


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    if not isinstance(loop, VirtualLoop):
        raise SimulationError("this task factory belongs to the virtual loop")
    number = loop.next_task_number()
    task = _Task(coro, loop=loop, number=number, **options)
    if options.get("name") is None:
        # asyncio numbers tasks over the whole process, which differs between runs
        task.set_name(f"task-{number}")
    return task


def _keep_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if isinstance(loop, VirtualLoop):
        error = context.get("exception")
        loop.failures.append(error if error is not None else SimulationError(str(context.get("message"))))


def _place(task: asyncio.Task[Any]) -> str:
    """Return the name of the task and the line at which it waits."""
    coro = task.get_coro()
    name = getattr(coro, "__qualname__", repr(coro))
    frames = task.get_stack(limit=1)
    if not frames:
        return str(name)
    return f"{name} at {frames[0].f_code.co_filename}:{frames[0].f_lineno}"


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(self: VirtualLoop, *args: Any, **options: Any) -> NoReturn:
        raise SimulationError(
            f"{name} is not available in virtual time, which has no network, threads or processes. Put the "
            "request into a separate method, and let the test override it to return the response."
        )

    return refuse


for _name in _REAL_WORLD:
    setattr(VirtualLoop, _name, _refused(_name))


EPOCH = 1_767_225_600.0
"""2026-01-01T00:00:00Z, the default start of virtual wall clocks."""


class VirtualClock:
    """A clock in virtual time. `now` is the loop's time, `wall` the same counted from `epoch` (Unix seconds).

    Without a loop, the running one is used. Changing `epoch` makes the wall clock jump.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, epoch: float = EPOCH) -> None:
        self.loop = loop or asyncio.get_running_loop()
        self.epoch = epoch

    def now(self) -> float:
        return self.loop.time()

    def wall(self) -> float:
        return self.epoch + self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return self.loop.call_later(seconds, call, *args)
