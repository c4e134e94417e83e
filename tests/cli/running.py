"""Two ways to run the command line: in this process, and as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

runner = CliRunner()


def run_in(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`moorage ARGS` in a folder, with the streams of a pipe."""
    command = [sys.executable, "-m", "moorage", *args]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True, timeout=60, check=False)
