"""Schedulers as child processes: their command lines, their configuration, and what they use."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.api import private_files, yaml_text
from moorage.api.errors import MoorageError
from moorage.api.version import VERSION

GRACE_SECONDS = 20.0
"""Between SIGTERM and SIGKILL."""
QPS = 5000
LOG_LINES = 10
_WORDS = ("kubeconfig", "config", "port")
_PATHS = {"certificate-authority", "client-certificate", "client-key", "tokenFile"}


@dataclass(frozen=True, slots=True)
class SchedulerCommand:
    """How one scheduler is started."""

    name: str
    command: str
    """With {kubeconfig}, {config} and {port}."""
    identity: str
    """Results with another identity are those of another scheduler."""

    def arguments(self, **words: Any) -> list[str]:
        """Split the command line, then fill the words in: paths may contain spaces."""
        return [re.sub(r"\{(\w+)\}", lambda found: str(words[found[1]]), part) for part in shlex.split(self.command)]


_PYTHON = f"{shlex.quote(sys.executable)} -m"
MOORAGE = SchedulerCommand(
    "moorage",
    f"{_PYTHON} moorage run --kubeconfig={{kubeconfig}} --config={{config}} --secure-port={{port}} "
    "--bind-address=127.0.0.1 --cert-dir=.",
    f"moorage {VERSION}",
)
CEILING = SchedulerCommand("ceiling", f"{_PYTHON} moorage.bench.cluster.ceiling {{kubeconfig}}", "ceiling")


def parse_beside(text: str) -> SchedulerCommand:
    """Read NAME=COMMAND. Raises a MoorageError."""
    name, _, command = text.partition("=")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) or name in (MOORAGE.name, CEILING.name) or not command.strip():
        raise MoorageError(f"--beside {text!r}: write NAME=COMMAND with a name of small letters, digits and '-'.")
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise MoorageError(f"--beside {name}: {error}; correct the quotes of the command.") from error
    unknown = [word for word in re.findall(r"\{(\w+)\}", command) if word not in _WORDS]
    if unknown:
        known = ", ".join(f"{{{word}}}" for word in _WORDS)
        raise MoorageError(f"--beside {name}: {{{unknown[0]}}} is not replaced; replaced are {known}.")
    return SchedulerCommand(name, command, " ".join(parts))


def child_kubeconfig(named: str, context: str, folder: Path) -> Path:
    """Return a kubeconfig for the children: the file of the user, or a private copy with another current context."""
    path = Path(named or os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not path.is_file():
        raise MoorageError(f"{path} is not a kubeconfig file; name one file with --kubeconfig.")
    if not context:
        return path.resolve()
    config = yaml_text.load(path.read_bytes(), str(path))
    for entry in [*(config.get("clusters") or ()), *(config.get("users") or ())]:
        for part in (entry.get("cluster"), entry.get("user")):
            for field in _PATHS & set(part or ()):
                part[field] = str(path.resolve().parent / part[field])
    copy = folder / "kubeconfig"
    private_files.write(copy, [yaml_text.dump({**config, "current-context": context}).encode()])
    return copy


class SchedulerProcess:
    """One scheduler from its start to its end. It is ended by its process id only."""

    def __init__(
        self, scheduler: SchedulerCommand, kubeconfig: Path, folder: Path, log: Path, name: str, lease: str
    ) -> None:
        """`name` is the schedulerName and the namespace of the lease."""
        self.scheduler = scheduler
        self._log, self._folder = log, folder
        config = folder / f"{lease}.json"
        config.write_text(json.dumps(_configuration(kubeconfig, name, lease)))
        self._command = scheduler.arguments(kubeconfig=kubeconfig, config=config, port=_free_port())
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    def start(self) -> None:
        """Start the process once. In a session of its own, it does not get the Ctrl-C of the terminal."""
        if self._process is not None:
            return
        self.started_at = time.monotonic()
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise MoorageError(f"Cannot start {self.scheduler.name} ({self._command[0]}): {error.strerror}.") from error

    def check(self) -> None:
        """Raise a MoorageError if the process has ended."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise MoorageError(f"{self.scheduler.name} ended with exit code {code}. {self.log_end()}")

    def log_end(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:] if self._log.exists() else []
        return "\n".join([f"Its log, {self._log}, ends:", *lines])

    async def stop(self) -> None:
        """End the process and wait for it."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """Return the highest resident memory so far."""
        found = re.search(r"^VmHWM:\s*(\d+)", self._proc("status"), re.M)
        return int(found[1]) * 1024 / 1e6 if found else 0.0

    def _proc(self, file: str) -> str:
        assert self._process is not None
        try:
            return Path(f"/proc/{self._process.pid}/{file}").read_text()
        except OSError as error:
            self.check()
            raise MoorageError(f"CPU time and memory of {self.scheduler.name} are read from /proc: {error}.") from error


def _configuration(kubeconfig: Path, name: str, lease: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name}],
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
        "leaderElection": {"leaderElect": True, "resourceName": lease, "resourceNamespace": name},
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
