"""The view of /moorage/v1/configuration: the configuration in use, its history, and changes to it.

`described` and `check` answer the same for clusters without a running scheduler.
"""

from __future__ import annotations

import asyncio

import msgspec

from moorage import config
from moorage.api.errors import MoorageError
from moorage.app import checks
from moorage.app.configuration import Configuration, build_registry, configure
from moorage.app.configuration_history import HistoryEntry, redacted_yaml
from moorage.app.reloading import SENT, Reloader, ReloadOutcome
from moorage.app.scheduler import Scheduler
from moorage.config import ConfigError, FeatureGates
from moorage.endpoints.answers import (
    CheckedConfiguration,
    ConfigurationAnswer,
    ConfigurationProblems,
    PastConfiguration,
    PastConfigurationText,
)
from moorage.endpoints.loop_bridge import LoopBridge
from moorage.endpoints.queries import Reason
from moorage.runtime.registry import Registry

APPLY_SECONDS = 60.0
"""Long enough to build plugins and list their kinds."""
MAX_CHARACTERS = 1 << 20


class ConfigurationView:
    """`writable` says whether the guard admits changes."""

    def __init__(self, scheduler: Scheduler, reloader: Reloader | None, bridge: LoopBridge, writable: bool) -> None:
        self._scheduler = scheduler
        self._reloader = reloader
        self._bridge = bridge
        self._writable = writable and reloader is not None

    async def answer(self) -> ConfigurationAnswer:
        outcome = ReloadOutcome() if self._reloader is None else self._reloader.outcome
        history = () if self._reloader is None else self._reloader.history
        checked = describe(self._scheduler.configuration, redacted_yaml(self._scheduler.configuration.config))
        return ConfigurationAnswer(
            generation=outcome.generation,
            error=outcome.error,
            needs_restart=outcome.needs_restart,
            writable=self._writable,
            text=checked.text,
            notes=checked.notes,
            warnings=checked.warnings,
            profiles=checked.profiles,
            history=[_past(entry) for entry in history],
        )

    async def entry(self, number: int) -> PastConfigurationText | Reason:
        """Return one configuration of the history with its text."""
        found = self._reloader.history.find(number) if self._reloader is not None else None
        if found is None:
            return f"configuration {number} is not in the history; GET /moorage/v1/configuration lists it"
        return msgspec.convert(found, PastConfigurationText, from_attributes=True)

    async def check(self, text: str) -> ConfigurationProblems:
        """Return what a configuration would mean, or what is wrong with it."""
        return await asyncio.to_thread(self._check, text)

    def _check(self, text: str) -> ConfigurationProblems:
        assert self._reloader is not None  # otherwise the guard admits no text
        try:
            found = self._reloader.read(text)
            if mistakes := checks.find_mistakes(found):
                raise ConfigError(mistakes, SENT)
        except ConfigError as error:
            return ConfigurationProblems(error=str(error), problems=[str(each) for each in error.problems])
        except MoorageError as error:
            return ConfigurationProblems(error=str(error), problems=[str(error)])
        return describe(found, redacted_yaml(found.config))

    async def apply(self, text: str) -> PastConfiguration:
        """Use a configuration; `error` says why it was refused, and is empty if it is in use."""
        reloader = self._reloader
        assert reloader is not None
        return _past(await self._bridge.run(lambda: reloader.apply(text), APPLY_SECONDS))


def describe(configuration: Configuration, text: str) -> CheckedConfiguration:
    """Return what a configuration means; `text` is its completed form."""
    return msgspec.convert({"text": text, **checks.describe(configuration)}, CheckedConfiguration)


def _past(entry: HistoryEntry) -> PastConfiguration:
    return msgspec.convert(entry, PastConfiguration, from_attributes=True)


def described(configuration: Configuration) -> ConfigurationAnswer:
    """Return a configuration that is not that of a running scheduler."""
    found = describe(configuration, config.dump(configuration.config))
    return ConfigurationAnswer(text=found.text, notes=found.notes, warnings=found.warnings, profiles=found.profiles)


def check(text: str, known: Registry | None = None, gates: FeatureGates | None = None) -> CheckedConfiguration:
    """Check a configuration as `moorage check` does. A text that is pasted into a page imports no modules: it
    may use the plugins that are installed, and those of `known`."""
    if len(text) > MAX_CHARACTERS:
        return _wrong(f"The text has {len(text)} characters; the limit is {MAX_CHARACTERS}.")
    try:
        if references := config.plugin_references(text):
            name = sorted(references)[0]
            return _wrong(f"{name}: use the plugin's name here; only `moorage check FILE` imports module:Class.")
        own = set(known or ()) - set(build_registry())
        found = configure(text, plugins=[known[name] for name in sorted(own)] if known else (), gates=gates)
        problems = checks.find_mistakes(found)
    except ConfigError as error:
        problems = list(error.problems)
    return _wrong(*map(str, problems)) if problems else describe(found, config.dump(found.config))


def _wrong(*problems: str) -> CheckedConfiguration:
    return CheckedConfiguration(error="; ".join(problems), problems=problems)
