"""Finds kubectl and runs it against one cluster, away from any kubeconfig and home of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 30.0


def find_all() -> list[Path]:
    """$KUBECTL, the programs that tools/controlplane built (newest first), and kubectl of the PATH."""
    found = []
    if given := os.environ.get("KUBECTL"):
        found.append(shutil.which(given) or given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "moorage", "controlplane")
    found += sorted(map(str, cache.glob("v1.*/kubectl")), reverse=True)
    found.append(shutil.which("kubectl") or "")
    return list(dict.fromkeys(Path(one) for one in found if one and os.access(one, os.X_OK)))


@dataclass(frozen=True)
class Result:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str

    def rows(self) -> list[list[str]]:
        """The lines of a table, split at two or more blanks."""
        lines = [line for line in self.out.splitlines() if line.strip()]
        return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


class Kubectl:
    """`kubectl("get", "pods")` gives the standard output of a command that must succeed."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self.program = program
        self.namespace = namespace
        self._kubeconfig = kubeconfig
        self._home = home

    def within(self, namespace: str) -> Kubectl:
        return Kubectl(self.program, self._kubeconfig, self._home, namespace)

    def __call__(self, *args: str, stdin: str = "", **environment: str) -> str:
        result = self.run(*args, stdin=stdin, **environment)
        assert result.code == 0, f"kubectl {' '.join(args)}: {result.err or result.out}"
        return result.out

    def refused(self, *args: str, stdin: str = "") -> str:
        """The standard error of a command that must fail."""
        result = self.run(*args, stdin=stdin)
        assert result.code != 0, f"kubectl {' '.join(args)} succeeded: {result.out}"
        return result.err

    def run(self, *args: str, stdin: str = "", **environment: str) -> Result:
        done = subprocess.run(
            self.command(*args),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=self.environment(**environment),
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """A command that goes on, such as a watch."""
        return subprocess.Popen(
            self.command(*args), stdout=subprocess.PIPE, text=True, env=self.environment(), bufsize=1
        )

    def command(self, *args: str) -> list[str]:
        where = ["--kubeconfig", str(self._kubeconfig), "--namespace", self.namespace]
        return [str(self.program), *where, *args]

    def environment(self, **more: str) -> dict[str, str]:
        path = os.environ.get("PATH", "")
        return {"HOME": str(self._home), "PATH": path, "KUBECONFIG": str(self._kubeconfig), **more}

    def until(self, wanted: Callable[[str], bool], *args: str) -> str:
        """Asks again and again until the output is as wanted."""
        deadline = time.monotonic() + _SECONDS
        while not wanted(out := self(*args)):
            assert time.monotonic() < deadline, f"kubectl {' '.join(args)} still says:\n{out}"
            time.sleep(0.05)
        return out
