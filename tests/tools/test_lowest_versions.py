"""The pins of `make test-lowest`: one for every direct dependency, at its lower bound."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "lowest_versions.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
pins = runpy.run_path(str(TOOL))["pins"]


def test_a_lower_bound_becomes_a_pin_and_a_repeated_one_is_pinned_once():
    project = {
        "dependencies": ["a>=1.2", "b-c >= 3"],
        "optional-dependencies": {"x": ["d[e]>=0.4.1,<1"], "y": ["a>=1.2"], "z": ["f>=9"]},
    }
    assert list(pins(project, ["x", "y"])) == ["a==1.2", "b-c==3", "d[e]==0.4.1"]


@pytest.mark.parametrize("requirement", ["a", "a==1", "a~=1.2", "a<2", "a>=1; python_version < '4'"])
def test_a_dependency_without_a_plain_lower_bound_is_an_error(requirement):
    with pytest.raises(ValueError, match="cannot pin"):
        list(pins({"dependencies": [requirement]}, []))


def test_every_extra_of_the_project_can_be_pinned():
    extras = sorted(PROJECT["optional-dependencies"])
    printed = subprocess.run([sys.executable, TOOL, *extras], capture_output=True, text=True, timeout=60, check=True)
    assert "starlette==" in printed.stdout
    assert len(printed.stdout.splitlines()) == len(set(printed.stdout.splitlines()))
    unknown = subprocess.run([sys.executable, TOOL, "sofa"], capture_output=True, text=True, timeout=60, check=False)
    assert (unknown.returncode, 'unknown extra "sofa"' in unknown.stderr) == (1, True)


def test_no_lower_bound_is_above_the_version_in_the_lock_files():
    locked = dict(
        re.findall(r"^([a-z0-9-]+)==([0-9.]+)", (ROOT / "requirements-dev.lock").read_text(), flags=re.MULTILINE)
    )
    for pin in pins(PROJECT, ["up", "sim", "ui", "otel", "dask", "parquet", "dev"]):
        name, _, version = pin.partition("==")
        assert _numbers(version) <= _numbers(locked[name.lower()]), pin


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
