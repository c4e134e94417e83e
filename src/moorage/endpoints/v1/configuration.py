"""The configuration of a running scheduler as /moorage/v1/configuration shows and takes it. Implements
`serving.configuration_api.Configurations`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from moorage.api.errors import MoorageError
from moorage.app import checks
from moorage.app.configuration import Configuration
from moorage.app.configuration_history import redacted_yaml
from moorage.app.reloading import SENT, Reloader
from moorage.app.scheduler import Scheduler
from moorage.config import ConfigError
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1.routes import Answer

APPLY_SECONDS = 60.0
"""Plugins are built and kinds listed meanwhile."""


class ConfigurationPage:
    def __init__(
        self, scheduler: Scheduler, reloader: Reloader | None, door: LoopDoor, writable: bool
    ) -> None:
        """`writable`: whether the guard lets changes in."""
        self._scheduler = scheduler
        self._reloader = reloader
        self._door = door
        self._writable = writable and reloader is not None

    async def page(self) -> Mapping[str, Any]:
        known = {} if self._reloader is None else self._reloader.outcome.to_wire()
        history = () if self._reloader is None else self._reloader.history
        return {
            "generation": 1,
            "error": "",
            "needsRestart": [],
            **known,
            "writable": self._writable,
            **described(self._scheduler.configuration),
            "history": [entry.to_wire() for entry in history],
        }

    async def entry(self, number: int) -> Answer:
        found = self._reloader.history.find(number) if self._reloader is not None else None
        if found is None:
            return f"configuration {number} is not in the history; GET /moorage/v1/configuration lists it"
        return {**found.to_wire(), "text": found.text}

    async def check(self, text: str) -> Mapping[str, Any]:
        return await asyncio.to_thread(self._check, text)

    def _check(self, text: str) -> Mapping[str, Any]:
        assert self._reloader is not None  # else the guard lets no text in
        try:
            found = self._reloader.read(text)
            if mistakes := checks.find_mistakes(found):
                raise ConfigError(mistakes, SENT)
        except ConfigError as error:
            return {"error": str(error), "problems": [str(problem) for problem in error.problems]}
        except MoorageError as error:
            return {"error": str(error), "problems": [str(error)]}
        return {"error": "", "problems": [], **described(found)}

    async def apply(self, text: str) -> Mapping[str, Any]:
        reloader = self._reloader
        assert reloader is not None
        entry = await self._door.run(lambda: reloader.apply(text), APPLY_SECONDS)
        return entry.to_wire()


def described(configuration: Configuration) -> dict[str, Any]:
    return {"text": redacted_yaml(configuration.config), **checks.describe(configuration)}
