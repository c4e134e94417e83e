"""The file system of the image, made from this environment: it runs alone, with nothing to break in with."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = "aiohttp, cryptography, msgspec, numpy, prometheus_client, sqlite3, ssl, uvicorn, uvloop, yaml"
SHELLS = {"sh", "bash", "dash", "busybox", "pip", "pip3", "apt", "apt-get", "dpkg", "perl", "gcc"}


@pytest.fixture(scope="module")
def rootfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("image") / "rootfs"
    command = [sys.executable, str(ROOT / "deploy/image/rootfs.py"), "--venv", sys.prefix, "--target"]
    subprocess.run([*command, str(target)], check=True)
    return target


@pytest.mark.slow
def test_nothing_but_python(rootfs: Path) -> None:
    programs = {path.name for path in rootfs.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    assert not programs & SHELLS
    assert not list(rootfs.rglob("site-packages/pip"))
    assert (rootfs / "etc/passwd").read_text().startswith("moorage:x:10001:10001:")
    assert (rootfs / "tmp").stat().st_mode & 0o7777 == 0o1777


@pytest.mark.slow
def test_python_runs_there_as_a_stranger(rootfs: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("changing the root directory needs root")
    chroot = shutil.which("chroot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if chroot is None:
        pytest.skip("this machine has no chroot")
    python = f"{sys.prefix}/bin/python"
    command = [chroot, "--userspec=10001:10001", str(rootfs), python, "-I", "-c"]
    done = subprocess.run([*command, f"import {IMPORTS}; print('fine')"], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


HELP = """
import sys
from typer.testing import CliRunner
import moorage, moorage.cli.root as root
assert moorage.__file__.startswith(sys.argv[1]), moorage.__file__
for name in root._BRIEF:
    result = CliRunner().invoke(root.app, [name, "--help"])
    print(name, result.exit_code, "not part of this installation" in " ".join(result.output.split()))
result = CliRunner().invoke(root.app, ["up", "--nodes", "3"])
print(result.exit_code, result.stderr)
"""


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Moorage as the image has it."""
    folder = tmp_path_factory.mktemp("production")
    shutil.copytree(ROOT / "src/moorage", folder / "moorage", ignore=shutil.ignore_patterns("__pycache__"))
    spec = importlib.util.spec_from_file_location("rootfs", ROOT / "deploy/image/rootfs.py")
    assert spec is not None
    assert spec.loader is not None
    rootfs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rootfs)
    rootfs.leave_out(folder / "moorage")
    return folder


def test_every_command_of_the_image_has_help_and_the_others_say_that_they_are_missing(production: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(production), "COLUMNS": "200"}
    command = [sys.executable, "-c", HELP, str(production)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=production)
    assert done.returncode == 0, done.stderr
    *helped, last, _ = done.stdout.splitlines()
    absent = {line.split()[0] for line in helped if line.endswith(" 0 True")}
    present = {line.split()[0] for line in helped if line.endswith(" 0 False")}
    assert absent == {"bench", "demo", "ui", "up"}
    assert {"run", "extender", "check", "explain", "what-if", "simulate", "manifests"} <= present
    assert len(absent | present) == len(helped)
    assert last.startswith("1 Error: `moorage up` is not part of this installation")


def test_the_containerfile_keeps_its_promises() -> None:
    text = (ROOT / "Containerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)
    last = stages[-1]
    assert last.startswith("scratch\n"), "the last stage has no base"
    assert "USER 10001:10001" in last
    assert "RUN" not in last
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert len(installs) >= 3
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
