"""Watches the files that a scheduler is configured from, and hands it what they say when they change, or a
configuration that is sent to it.

What a change means for pods and plugins is the scheduler's part (`Scheduler.reload`). Files are looked at,
not subscribed to: a mounted ConfigMap is a link whose target is exchanged, an editor writes another file of
that name, and some file systems announce neither.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import structs

from moorage import config
from moorage.api.core import Lease
from moorage.api.errors import MoorageError
from moorage.api.meta import ObjectMeta
from moorage.app.configuration import Configuration, build_registry, configure
from moorage.app.configuration_history import FILE, REQUEST, START, Entry, History, shown
from moorage.app.plugin_modules import files_of, imported_anew, modules_of
from moorage.app.scheduler import Scheduler
from moorage.config.types import KubeSchedulerConfiguration
from moorage.config.wire import to_wire
from moorage.framework.points import Plugin
from moorage.framework.ports import Clock
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

LOOK_SECONDS = 0.5
RETAINED = ("leader_election", "client_connection", "delay_cache_until_active")
"""Fields of a configuration that a running process does not exchange."""
SENT = "the configuration that was sent"


def read_sent(text: str, plugins: Sequence[type[Plugin]]) -> Configuration:
    return configure(text, plugins=plugins, source=SENT)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a configuration comes from."""

    load: Callable[[], Configuration]
    """Reads it anew; may block."""
    files: tuple[Path, ...] = ()
    """A change of one of these is a reason to."""
    plugins: bool = False
    """So is a change of the source code of plugins."""
    read: Callable[[str, Sequence[type[Plugin]]], Configuration] = read_sent
    """Reads one that is sent, beside the usual plugins with these."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which configuration is in use, and what is wrong with a newer one."""

    generation: int = 1
    error: str = ""
    """Why the newest configuration cannot be used; empty when it is in use."""
    needs_restart: tuple[str, ...] = ()
    """Fields of the newest one that are not."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "error": self.error,
            "needsRestart": list(self.needs_restart),
        }


@dataclass(slots=True)
class Reloader:
    """Keeps a scheduler to its source. Run it when the scheduler follows the cluster."""

    scheduler: Scheduler
    source: Source
    clock: Clock
    metrics: SchedulerMetrics | None = None
    load_in: Callable[[Callable[[], Configuration]], Awaitable[Configuration]] = asyncio.to_thread
    """Where loading happens, so that it does not hold up the loop."""
    outcome: Outcome = Outcome()
    history: History = field(default_factory=History)
    _runs: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One exchange at a time."""
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _loaded: dict[Path, str] = field(default_factory=dict)
    """File → digest of what was loaded from it last."""
    _known: dict[Path, object] = field(default_factory=dict)
    """File → stamp with which it has that content."""

    def __post_init__(self) -> None:
        self._remember(START)

    def request(self) -> None:
        """Reload as soon as possible, changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        self._note()
        self._runs = True
        while True:
            await self._until_due()
            await self.reload()

    async def _until_due(self) -> None:
        before: object = None
        while not self._asked.is_set():
            await self.clock.sleep(LOOK_SECONDS)
            now = {file: _stamp(file) for file in self._files()}
            # A file that differs at two looks is still being written.
            if now == before and now != self._known:
                if {file: _digest(file) for file in now} != self._loaded:
                    break
                self._known = now
            before = now
        self._asked.clear()

    def _files(self) -> list[Path]:
        return [*self.source.files, *files_of(self._modules().values())]

    def _modules(self) -> dict[str, ModuleType]:
        return modules_of(self.scheduler.configuration.plugins()) if self.source.plugins else {}

    def _note(self) -> None:
        """What is in the files now is, or will be, what was loaded."""
        self._known = {file: _stamp(file) for file in self._files()}
        self._loaded = {file: _digest(file) for file in self._known}

    async def reload(self) -> None:
        """Load the configuration and hand it to the scheduler; whatever fails leaves the present one."""
        async with self._lock:
            self._note()
            error = await self._exchange(self._load)
            self._remember(FILE, error)

    async def apply(self, text: str) -> Entry:
        """Go on by this configuration until another comes, from the source too; whatever fails leaves the
        present one."""
        async with self._lock:
            if not self._runs:
                error = "the scheduler has not read the cluster yet: try again"
            else:
                error = await self._exchange(partial(self.read, text))
            return self._remember(REQUEST, error)

    def read(self, text: str) -> Configuration:
        """A configuration that is sent brings no code: it may name the plugins that are installed and those
        that are in use."""
        known = self.scheduler.configuration.registry
        if strange := sorted(config.plugin_references(text) - known.aliases.keys()):
            raise MoorageError(
                f"{strange[0]}: a configuration that is sent imports no code; write it into the file of "
                "--config, or use the name of a plugin that is known"
            )
        own = known.keys() - build_registry().keys()
        return self.source.read(text, [known[name] for name in sorted(own)])

    async def _exchange(self, load: Callable[[], Configuration]) -> str:
        """Why it failed; empty when it did not."""
        present = self.scheduler.configuration.config
        try:
            found = await self.load_in(load)
            await self.scheduler.reload(replace(found, config=_retaining(present, found.config)))
        except MoorageError as error:
            return self._failed(str(error))
        except Exception as error:
            _log.error("Reload failed with an unexpected error", error=error, stack=True)
            return self._failed(f"{type(error).__name__}: {error}")
        self._succeeded(_differences(present, found.config))
        return ""

    def _remember(self, origin: str, error: str = "") -> Entry:
        about: dict[str, Any] = {"error": error}
        if not error:
            about = {
                "needs_restart": self.outcome.needs_restart,
                "text": shown(self.scheduler.configuration.config),
            }
        return self.history.add(self.clock.wall(), origin, self.outcome.generation, **about)

    def _load(self) -> Configuration:
        if not self.source.plugins:
            return self.source.load()
        with imported_anew(self._modules()):
            return self.source.load()

    def _failed(self, why: str) -> str:
        self.outcome = replace(self.outcome, error=why)
        _log.error("Reload failed; keeping the current configuration", reason=why)
        line = " ".join(why.split())  # `kubectl get events` shows the first line of a note alone
        self._tell("failed", "Warning", "ReloadFailed", f"generation {self.outcome.generation} stays: {line}")
        return why

    def _succeeded(self, needs_restart: tuple[str, ...]) -> None:
        if self._files() != list(self._known):
            self._note()  # other plugins, with other files
        self.outcome = Outcome(self.outcome.generation + 1, "", needs_restart)
        note = f"generation {self.outcome.generation}: profiles {' '.join(self.scheduler.engine.profiles)}"
        if needs_restart:
            note += f"; these fields need a restart: {', '.join(needs_restart)}"
            _log.warning("Fields of the configuration need a restart", fields=" ".join(needs_restart))
        self._tell("applied", "Normal", "ConfigurationReloaded", note)

    def _tell(self, result: str, kind: str, reason: str, note: str) -> None:
        if self.metrics is not None:
            self.metrics.config_reloads.inc(result)
            self.metrics.config_generation.set(to=self.outcome.generation)
        election = self.scheduler.configuration.config.leader_election
        meta = ObjectMeta(name=election.resource_name, namespace=election.resource_namespace)
        self.scheduler.recorder.event(
            Lease(metadata=meta),
            type=kind,
            reason=reason,
            action="Reload",
            note=note,
            controller=next(iter(self.scheduler.engine.profiles)),
        )


def _stamp(file: Path) -> object:
    try:
        found = file.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    except OSError as error:
        return error.errno


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        return f"error {error.errno}"


def _retaining(present: KubeSchedulerConfiguration, new: KubeSchedulerConfiguration) -> Any:
    """The new configuration as it will be in use."""
    return structs.replace(new, **{name: getattr(present, name) for name in RETAINED})


def _differences(present: KubeSchedulerConfiguration, new: KubeSchedulerConfiguration) -> tuple[str, ...]:
    """The paths of the fields that are not exchanged and differ."""
    before, after = to_wire(present), to_wire(new)
    found: list[str] = []
    for name in structs.fields(type(present)):
        if name.name in RETAINED:
            found += _paths(name.encode_name, before.get(name.encode_name), after.get(name.encode_name))
    return tuple(found)


def _paths(path: str, before: Any, after: Any) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(before.keys() | after.keys())
        return [each for key in keys for each in _paths(f"{path}.{key}", before.get(key), after.get(key))]
    return [] if before == after else [path]
