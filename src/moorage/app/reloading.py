"""Reload the configuration when one of its files changes or a new one is submitted.

`Scheduler.reload` decides what the change means for pods and plugins. Files are polled, because file systems
do not announce all changes: a mounted ConfigMap is a link with a new target, and an editor may write another
file of the same name.
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
from moorage.api.failures import failure_text, is_cancellation, is_interruption
from moorage.api.meta import ObjectMeta
from moorage.app.configuration import Configuration, build_registry, configure
from moorage.app.configuration_history import FILE, REQUEST, START, ConfigurationHistory, HistoryEntry, redacted_yaml
from moorage.app.plugin_modules import concerned, files_of, fresh_imports, modules_of
from moorage.app.scheduler import Scheduler
from moorage.config.types import KubeSchedulerConfiguration
from moorage.config.wire import to_wire
from moorage.framework.points import Plugin
from moorage.framework.ports import Clock
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

POLL_SECONDS = 0.5
RETAINED_FIELDS = ("leader_election", "client_connection", "delay_cache_until_active", "enable_profiling")
"""Fields of a configuration that take effect only after a restart."""
SENT = "the configuration that was sent"
"""The source of a submitted configuration in messages."""


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """The source of a configuration."""

    load: Callable[[], Configuration]
    """Reads the configuration; may block."""
    files: tuple[Path, ...] = ()
    """A change of one of these files triggers a reload."""
    plugins: bool = False
    """Whether a change of plugin source code triggers a reload too."""
    read: Callable[[str, Sequence[type[Plugin]]], Configuration] | None = None
    """Reads a submitted configuration, with these plugins beside the usual ones. None reads it with the feature gates
    in use."""


@dataclass(frozen=True, slots=True)
class ReloadOutcome:
    """The generation in use, and the error of a newer configuration."""

    generation: int = 1
    error: str = ""
    """Why the newest configuration was rejected; empty if it is in use."""
    needs_restart: tuple[str, ...] = ()
    """Fields of the newest configuration that take effect only after a restart."""

    def to_wire(self) -> dict[str, Any]:
        return {"generation": self.generation, "error": self.error, "needsRestart": list(self.needs_restart)}


@dataclass(slots=True)
class Reloader:
    """Keeps the configuration of a scheduler up to date. Start it after `Scheduler.follow`."""

    scheduler: Scheduler
    source: ConfigurationSource
    clock: Clock
    metrics: SchedulerMetrics | None = None
    load_in: Callable[[Callable[[], Configuration]], Awaitable[Configuration]] = asyncio.to_thread
    """Runs the loading in another thread, so that it does not block the event loop."""
    sends_events: bool = True
    outcome: ReloadOutcome = ReloadOutcome()
    history: ConfigurationHistory = field(default_factory=ConfigurationHistory)
    _running: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Allows one reload at a time."""
    _reload_requested: asyncio.Event = field(default_factory=asyncio.Event)
    _digests: dict[Path, str] = field(default_factory=dict)
    """File → digest of the content that was read last."""
    _loaded: dict[Path, str] = field(default_factory=dict)
    """File → digest of the content in use."""
    _stamps: dict[Path, object] = field(default_factory=dict)
    """File → stamp of the file with that content."""

    def __post_init__(self) -> None:
        self._add_to_history(START)

    def request(self) -> None:
        """Reload as soon as possible, even if nothing has changed."""
        self._reload_requested.set()

    async def run(self) -> None:
        """Reload on every change until cancelled."""
        self._remember_files()
        self._loaded = self._digests
        self._running = True
        while True:
            await self._wait_until_due()
            await self.reload()

    async def _wait_until_due(self) -> None:
        before: object = None
        while not self._reload_requested.is_set():
            await self.clock.sleep(POLL_SECONDS)
            now = {file: _stamp(file) for file in self._files()}
            # A file that differs between two polls is still being written.
            if now == before and now != self._stamps:
                if {file: _digest(file) for file in now} != self._digests:
                    break
                self._stamps = now
            before = now
        self._reload_requested.clear()

    def _files(self) -> list[Path]:
        return [*self.source.files, *files_of(self._modules().values())]

    def _modules(self) -> dict[str, ModuleType]:
        return modules_of(self.scheduler.configuration.plugins()) if self.source.plugins else {}

    def _remember_files(self) -> None:
        """Remember the current content of the files as loaded."""
        self._stamps = {file: _stamp(file) for file in self._files()}
        self._digests = {file: _digest(file) for file in self._stamps}

    async def reload(self) -> None:
        """Load the configuration and apply it. If that fails, the current one stays."""
        async with self._lock:
            self._remember_files()
            changed = [file for file, digest in self._digests.items() if self._loaded.get(file) != digest]
            error = await self._exchange(partial(self._load, changed), _changes(changed))
            if not error:
                self._loaded = dict(self._digests)
            self._add_to_history(FILE, error)

    async def apply(self, text: str) -> HistoryEntry:
        """Apply a submitted configuration until the next change or submission; if that fails, the current one stays."""
        async with self._lock:
            if not self._running:
                error = "the scheduler has not read the cluster yet; try again"
            else:
                error = await self._exchange(partial(self.read, text), "a configuration was sent")
            return self._add_to_history(REQUEST, error)

    def read(self, text: str) -> Configuration:
        """Read a submitted configuration, which imports no code: it may name plugins that are installed or in use."""
        known = self.scheduler.configuration.registry
        if unknown := sorted(config.plugin_references(text) - known.aliases.keys()):
            raise MoorageError(
                f"{unknown[0]}: a submitted configuration imports no code; put it into the --config file, "
                "or name a plugin that is installed or in use"
            )
        own = known.keys() - build_registry().keys()
        plugins = [known[name] for name in sorted(own)]
        if self.source.read is not None:
            return self.source.read(text, plugins)
        return configure(text, plugins=plugins, source=SENT, gates=self.scheduler.configuration.gates)

    async def _exchange(self, load: Callable[[], Configuration], why: str) -> str:
        """Load and apply a configuration. Returns the error, empty on success."""
        current = self.scheduler.configuration.config
        try:
            found = await self.load_in(load)
            new = replace(found, config=_with_retained_fields(current, found.config))
            await self.scheduler.reload(new, why=why)
        except MoorageError as error:
            return self._report_failure(str(error))
        except BaseException as error:
            if is_interruption(error) or is_cancellation(error):
                raise
            _log.error("Reload failed unexpectedly", error=error, stack=True)
            return self._report_failure(f"{failure_text(error)}")
        self._report_success(_changed_retained_fields(current, found.config), why)
        return ""

    def _add_to_history(self, origin: str, error: str = "") -> HistoryEntry:
        about: dict[str, Any] = {"error": error}
        if not error:
            about = {
                "needs_restart": self.outcome.needs_restart,
                "text": redacted_yaml(self.scheduler.configuration.config),
            }
        return self.history.add(self.clock.wall(), origin, self.outcome.generation, **about)

    def _load(self, changed: Sequence[Path]) -> Configuration:
        if not self.source.plugins:
            return self.source.load()
        with fresh_imports(concerned(self._modules(), changed)):
            return self.source.load()

    def _report_failure(self, why: str) -> str:
        self.outcome = replace(self.outcome, error=why)
        _log.error("Reload failed; keeping the current configuration", reason=why)
        line = " ".join(why.split())  # `kubectl get events` shows only the first line of a note
        self._report("failed", "Warning", "ReloadFailed", f"generation {self.outcome.generation} stays: {line}")
        return why

    def _report_success(self, needs_restart: tuple[str, ...], why: str) -> None:
        if self._files() != list(self._stamps):
            self._remember_files()  # the new configuration has other plugins, with other files
        self._loaded = {**self._digests, **self._loaded}
        self.outcome = ReloadOutcome(self.outcome.generation + 1, "", needs_restart)
        note = f"generation {self.outcome.generation}: profiles {' '.join(self.scheduler.engine.profiles)}"
        note += f" ({why})"
        if needs_restart:
            note += f"; these fields need a restart: {', '.join(needs_restart)}"
            _log.warning("Some changed fields take effect only after a restart", fields=" ".join(needs_restart))
        self._report("applied", "Normal", "ConfigurationReloaded", note)

    def _report(self, result: str, kind: str, reason: str, note: str) -> None:
        if self.metrics is not None:
            self.metrics.config_reloads.inc(result)
            self.metrics.config_generation.set(to=self.outcome.generation)
        if not self.sends_events:
            return
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


def _changes(files: Sequence[Path]) -> str:
    """Say which files have changed, relative to the current folder if they are in it."""
    here = Path.cwd()
    names = [str(file.relative_to(here) if file.is_relative_to(here) else file) for file in files]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3]) or 'no file'}{more} changed"


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


def _with_retained_fields(current: KubeSchedulerConfiguration, new: KubeSchedulerConfiguration) -> Any:
    """Return the new configuration with the current values of RETAINED_FIELDS."""
    return structs.replace(new, **{name: getattr(current, name) for name in RETAINED_FIELDS})


def _changed_retained_fields(current: KubeSchedulerConfiguration, new: KubeSchedulerConfiguration) -> tuple[str, ...]:
    """Return the paths of retained fields that differ."""
    before, after = to_wire(current), to_wire(new)
    found: list[str] = []
    for name in structs.fields(type(current)):
        if name.name in RETAINED_FIELDS:
            found += _differing_paths(name.encode_name, before.get(name.encode_name), after.get(name.encode_name))
    return tuple(found)


def _differing_paths(path: str, before: Any, after: Any) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(before.keys() | after.keys())
        return [each for key in keys for each in _differing_paths(f"{path}.{key}", before.get(key), after.get(key))]
    return [] if before == after else [path]
