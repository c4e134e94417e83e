"""The file system of the image, made from this environment: it runs alone, with nothing to break in with."""

from __future__ import annotations

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
