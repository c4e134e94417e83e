"""A comparison on a cluster that loses a worker: waits for the first result of a command, kills a process,
and waits for the end. As a program it does so beside a Ray cluster of its own:

    python -m tests.sim.killing FOLDER COMMAND…

Ray listens on every address of the machine, so it belongs into a network namespace that has loopback only;
and into a PID namespace, with whose first process everything ends.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PATIENCE = 120.0
RAY_PORT = 10001
RAY = (
    "start", "--head", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=2", "--include-dashboard=false",
    "--disable-usage-stats", f"--ray-client-server-port={RAY_PORT}",
)  # fmt: skip


def run_and_kill(command: Sequence[str], folder: Path, victim: Callable[[], int]) -> int:
    """The exit code of a command with results in a folder. With the first of them `victim` is killed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or _results(folder) > 0)
        ended = process.poll()
        if ended is not None:
            raise AssertionError(f"the command ended with {ended} before a result could be seen")
        os.kill(victim(), signal.SIGKILL)
        return process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE:g} s in vain")
        time.sleep(0.01)


def _results(folder: Path) -> int:
    return len(list(folder.glob("*/summary.json")))


def _ray_worker() -> int:
    """The process of one that does a run; only those of the namespace are seen."""
    found: list[int] = []

    def look() -> bool:
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                busy = line.read_bytes().startswith(b"ray::_elsewhere")
            except OSError:
                continue  # it has ended
            if busy:
                found.append(int(line.parent.name))
        return bool(found)

    until(look)
    return found[0]


def _can_be_used() -> bool:
    """Whether a client gets a server of its own; on a busy machine that fails long after the port is open."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", RAY_PORT)):
            return False
    client = [sys.executable, "-c", f"import ray; ray.init('ray://127.0.0.1:{RAY_PORT}')"]
    quiet = subprocess.DEVNULL
    return subprocess.run(client, stdout=quiet, stderr=quiet, check=False).returncode == 0


def main(folder: str, *command: str) -> int:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="ray") as files:  # not deep: sockets have short names
        ray = [str(Path(sys.executable).with_name("ray")), *RAY, f"--temp-dir={files}"]
        subprocess.Popen(ray, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(_can_be_used)
        return run_and_kill(command, Path(folder), _ray_worker)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
