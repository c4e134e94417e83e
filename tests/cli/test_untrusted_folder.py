"""Commands started in a folder of others import nothing from it: no file there stands for a package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_up import up

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-sample-plugin"
POISON = 'import pathlib; pathlib.Path(__file__).with_suffix(".ran").touch(); raise SystemExit("poisoned")\n'
NAMES = ("yaml", "numpy", "msgspec", "typer", "jsonschema", "uvloop", "typing", "random", "sample_not_named")
AS_MODULE = ("-m", "moorage")
AS_SCRIPT = ("-P", "-c", "from moorage.cli import main; main()")
"""What the installed `moorage` does: its own folder is first on the path, not the current one."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example's plugin and configuration, among files with the names of packages."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(POISON)
    for name in ("sample.py", "scheduler.yaml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    return tmp_path


def moorage(folder: Path, *args: str, way: tuple[str, ...] = AS_MODULE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *way, *args]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=60, check=False)


def ran(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.ran"))


@pytest.mark.parametrize("way", [AS_MODULE, AS_SCRIPT], ids=["python -m moorage", "moorage"])
@pytest.mark.parametrize(
    "args",
    [
        ("version",),
        ("check", "scheduler.yaml"),
        ("check", "scheduler.yaml", "--plugin", "sample:Sample"),
        ("manifests", "--config", "scheduler.yaml"),
        ("run", "--config", "scheduler.yaml", "--plugin-path", ".", "--write-config-to", "-"),
        ("demo", "--speed", "0"),
    ],
    ids=" ".join,
)
def test_no_file_of_the_folder_takes_the_place_of_a_package(
    folder: Path, args: tuple[str, ...], way: tuple[str, ...]
) -> None:
    result = moorage(folder, *args, way=way)
    assert (result.returncode, ran(folder)) == (0, []), result.stderr


def test_a_cluster_with_a_plugin_of_the_folder_is_not_poisoned_by_the_others(folder: Path) -> None:
    with up(folder, "--config", "scheduler.yaml") as running:
        assert len(running.ask("GET", "/api/v1/nodes")["items"]) == 3
        assert "schedulers: sample-scheduler" in running.said
    assert ran(folder) == []


@pytest.mark.parametrize("args", [("check", "named.yaml"), ("manifests", "--config", "named.yaml")], ids=" ".join)
def test_a_reference_finds_the_installed_module_before_that_of_the_folder(folder: Path, args: tuple[str, ...]) -> None:
    text = (folder / "scheduler.yaml").read_text().replace("sample:Sample", "yaml:Sample")
    (folder / "named.yaml").write_text(text)
    result = moorage(folder, *args)
    assert result.returncode == 1
    assert "cannot import plugin 'yaml:Sample'" in result.stderr
    assert os.path.join("yaml", "__init__.py") in result.stderr.replace("\n", "")
    assert ran(folder) == []


def test_run_looks_in_no_folder_that_is_not_named(folder: Path) -> None:
    args = ("run", "--config", "scheduler.yaml", "--write-config-to", "-")
    result = moorage(folder, *args)
    assert result.returncode == 1
    assert "No module named 'sample'; install its package, or name its folder with --plugin-path" in result.stderr
    assert "- name: sample\n" in moorage(folder.parent, *args[:1], *_named(folder), *args[3:]).stdout


def _named(folder: Path) -> tuple[str, ...]:
    return "--config", str(folder / "scheduler.yaml"), "--plugin-path", str(folder)


def test_run_refuses_a_plugin_path_that_is_no_folder(folder: Path) -> None:
    result = moorage(folder, "run", "--plugin-path", "sample.py", "--write-config-to", "-")
    assert result.returncode == 1
    assert "--plugin-path: sample.py is not a folder" in result.stderr


def test_isolated_python_looks_in_no_folder(folder: Path) -> None:
    """As the image runs it. Paths of this checkout stand in for the installed package."""
    paths = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}"
    command = f"{paths}; from moorage.cli import main; main()"
    result = moorage(folder, "check", "scheduler.yaml", way=("-I", "-c", command))
    assert "No module named 'sample'" in result.stderr
    assert result.returncode == 1
