"""Child processes of the tests: started with a log file, ended by their own pid, never left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

GRACE = 20.0
"""Seconds between SIGTERM and SIGKILL."""


class StartFailed(Exception):
    """A process ended, or did not become ready; the message carries the end of its log."""


class Daemon:
    """One process. `log` holds everything that it wrote, over restarts."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.command = list(command)
        self.log = folder / f"{name}.log"
        self._folder = folder
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    def start(self) -> None:
        assert not self.running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self._folder, env=self._env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float, what: str = "ready") -> None:
        """Wait for a condition. If the process ends early, fail at once with its log."""
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise StartFailed(f"{self.name} ended with {self.exit_code}; its log ends:\n{self.last_lines()}")
            if time.monotonic() > deadline:
                raise StartFailed(f"{self.name} was not {what} in {seconds:g} s:\n{self.last_lines()}")
            time.sleep(0.05)

    def stop(self) -> int | None:
        """SIGTERM, then SIGKILL after the grace; the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int | None:
        return self._end(signal.SIGKILL)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """The exit code of a process that ends by itself."""
        assert self._process is not None
        return self._process.wait(seconds)

    def _end(self, number: int) -> int | None:
        process = self._process
        if process is None:
            return None
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            return process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait(GRACE)

    def last_lines(self, lines: int = 15) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no log)"


Started = TypeVar("Started")
PORT_TRIES = 3


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def with_free_ports(start: Callable[[], Started]) -> Started:
    """`start()`, which asks for free ports, and again when another process was faster to take one."""
    for _ in range(PORT_TRIES - 1):
        try:
            return start()
        except StartFailed as error:
            if "in use" not in str(error):
                raise
    return start()
