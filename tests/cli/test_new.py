"""`moorage new`: what it writes, what it refuses, and that the result works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.cli.new import FILES, name_problem, words
from moorage.cli.root import app
from tests.cli.running import runner


def new(folder: Path, name: str, *args: str):
    return runner.invoke(app, ["new", name, "--directory", str(folder), *args])


@pytest.mark.parametrize(
    ("name", "package", "plugin"),
    [
        ("hello", "hello", "Hello"),
        ("gpu-quota", "gpu_quota", "GpuQuota"),
        ("Low.CPU__first", "low_cpu_first", "LowCPUFirst"),
    ],
)
def test_names_follow_from_the_package_name(name, package, plugin):
    assert name_problem(name) == ""
    assert (words(name)["package"], words(name)["plugin"]) == (package, plugin)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is not a package name"),
        ("-x", "is not a package name"),
        ("a b", "is not a package name"),
        ("../evil", "is not a package name"),
        ("größe", "is not a package name"),
        ("a\n", "is not a package name"),
        ("3d", "Python cannot import"),
        ("class", "Python cannot import"),
        ("none", "Python cannot import"),
        ("json", "would shadow"),
        ("moorage", "would shadow"),
        ("node-name", "which kube-scheduler has"),
    ],
)
def test_names_that_cannot_work_are_refused(tmp_path, name, why):
    result = runner.invoke(app, ["new", "--directory", str(tmp_path / "made"), "--", name])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert why in result.stderr
    assert not (tmp_path / "made").exists()


def test_a_folder_with_content_is_not_touched(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    result = new(tmp_path, "hello")
    assert result.exit_code == 1
    assert "is not empty. Nothing was changed" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_the_way_is_reported(tmp_path):
    (tmp_path / "hello").write_text("")
    result = new(tmp_path / "hello", "hello")
    assert result.exit_code == 1
    assert "exists and is not a folder" in result.stderr
    assert new(tmp_path / "hello" / "deeper", "hello").exit_code == 1


def test_an_empty_folder_is_used_and_every_template_filled(tmp_path):
    assert new(tmp_path, "gpu-quota").exit_code == 0
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == len(FILES)
    assert all("$" not in path.read_text() for path in made)


def test_without_a_directory_the_folder_has_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runner.invoke(app, ["new", "hello"]).exit_code == 0
    assert (tmp_path / "hello" / "src" / "hello" / "plugin.py").is_file()


def run(folder: Path, *command: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, text=True, capture_output=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    "name",
    [
        "hello",
        # Their classes are called as classes of Moorage that the new files use.
        pytest.param("cluster", marks=pytest.mark.slow),
        pytest.param("status", marks=pytest.mark.slow),
        # Bare, YAML would read it as a truth value.
        pytest.param("on", marks=pytest.mark.slow),
    ],
)
def test_the_test_of_a_new_package_passes(tmp_path, name):
    new(tmp_path, name)
    result = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


@pytest.mark.slow
def test_an_installed_package_is_usable_by_its_name_alone(tmp_path):
    project, site = tmp_path / "gpu-quota", tmp_path / "site"
    new(project, "gpu-quota")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site))
    installed = run(project, "-m", "pip", "install", *options, ".")
    assert installed.returncode == 0, installed.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    checked = run(elsewhere, "-m", "moorage", "check", str(project / "scheduler.yaml"), path=str(site))
    assert checked.returncode == 0, checked.stderr
    assert "GpuQuota*" in checked.stdout
    tested = run(project, "-m", "pytest", "-q", path=str(site))
    assert "2 passed" in tested.stdout, tested.stdout


@pytest.mark.slow
def test_a_new_package_meets_strict_linters(tmp_path):
    new(tmp_path, "hello")
    rules = run(tmp_path, "-m", "ruff", "check", "--isolated", "--line-length", "110", ".")
    assert rules.returncode == 0, rules.stdout
    types = run(tmp_path, "-m", "mypy", "--strict", "src")
    assert types.returncode == 0, types.stdout
