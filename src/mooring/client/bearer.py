"""Keeps the bearer token of one transport fresh: files are read again, exec plugins run again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mooring.api.errors import MooringError
from mooring.client.credentials import Credentials
from mooring.framework.ports import Clock
from mooring.telemetry import logs
from mooring.telemetry.logs import Throttle

log = logs.get(__name__)

READ_SECONDS = 60.0
"""A token file is read again after so long; kubelets rotate it well before the old one ends."""
EARLY_SECONDS = 60.0
"""Credentials that are known to end are renewed so long before."""
RELOAD_SECONDS = 10.0
"""Between two renewals, however many requests are refused meanwhile: an exec plugin is a process."""


class Bearer:
    """The token to send now. `credentials` changes with what is renewed."""

    def __init__(self, credentials: Credentials, clock: Clock) -> None:
        self.credentials = credentials
        self._clock = clock
        self._token = credentials.token
        self._read_at = float("-inf")
        self._reloaded_at = float("-inf")
        self._reloading: asyncio.Task[None] | None = None
        self._complaints = Throttle(clock.now)

    async def token(self) -> str:
        """Empty: none."""
        if self.credentials.token_file:
            if self._clock.now() - self._read_at >= READ_SECONDS:
                self._read()
        elif self._ends_soon():
            await self._reload()
        return self._token

    async def refused(self, token: str) -> bool:
        """The server did not take this one: whether there is another to try."""
        if token != self._token:
            return True  # renewed meanwhile, for another request
        if self.credentials.token_file:
            self._read()
        else:
            await self._reload()
        return token != self._token

    def _read(self) -> None:
        self._read_at = self._clock.now()
        path = self.credentials.token_file
        try:
            token = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            self._complain("Token file cannot be read, going on with the last token", path, error)
            return
        if token:
            self._token = token
        else:
            self._complain("Token file is empty, going on with the last token", path, None)

    def _ends_soon(self) -> bool:
        expires = self.credentials.expires
        return expires is not None and self._clock.wall() > expires - EARLY_SECONDS

    async def _reload(self) -> None:
        if self.credentials.reload is None:
            return
        if self._reloading is None:
            if self._clock.now() - self._reloaded_at < RELOAD_SECONDS:
                return
            self._reloaded_at = self._clock.now()
            self._reloading = asyncio.create_task(self._renew(), name="credentials")
        # Shared by all who wait for it: the one who asked first may be cancelled.
        await asyncio.shield(self._reloading)

    async def _renew(self) -> None:
        try:
            assert self.credentials.reload is not None
            self.credentials = await self.credentials.reload()
            self._token = self.credentials.token
        except MooringError as error:
            self._complain("Credentials cannot be renewed", self.credentials.source, error)
        finally:
            self._reloading = None

    def _complain(self, message: str, source: str, error: Exception | None) -> None:
        if self._complaints.admits():
            log.warning(message, source=source, err=error)
