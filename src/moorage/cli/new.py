"""`moorage new`: a plugin package that works, to change rather than to write."""

from __future__ import annotations

import keyword
import re
import sys
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

import moorage
from moorage.cli.printing import fail, line
from moorage.config.defaults import DEFAULT_NAMES

FILES = {
    "pyproject.toml.in": "pyproject.toml",
    "README.md.in": "README.md",
    "scheduler.yaml.in": "scheduler.yaml",
    "init.py.in": "src/$package/__init__.py",
    "plugin.py.in": "src/$package/plugin.py",
    "test_plugin.py.in": "tests/test_plugin.py",
}
"""Template → the file that it becomes."""
TAKEN = sys.stdlib_module_names | {"moorage", "msgspec", "numpy", "pytest", "rich", "typer", "yaml", "tests"}
"""Packages that a new one must not hide."""
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The package, for instance gpu-quota.")],
    directory: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put it; without, a folder of that name.")
    ] = None,
) -> None:
    """Start a plugin package of your own: plugin, configuration, test and packaging.

    After [bold]pip install[/bold] every Moorage on that machine knows the plugin by its name.
    """
    problem = name_problem(name)
    if problem:
        fail(problem)
    target = directory or Path(name)
    try:
        _refuse_occupied(target)
        _write(target, words(name))
    except OSError as error:
        fail(f"{error.filename or target}: cannot be written: {error.strerror}")
    _tell(target, words(name))


def words(name: str) -> dict[str, str]:
    """What the templates' placeholders stand for."""
    parts = [part for part in re.split(r"[-_.]+", name) if part]
    return {
        "name": "-".join(parts).lower(),
        "package": "_".join(parts).lower(),
        "plugin": "".join(part[0].upper() + part[1:] for part in parts),
        "moorage": ".".join(moorage.__version__.split(".")[:2]),
    }


def name_problem(name: str) -> str:
    """Why a package cannot have this name; empty when it can."""
    if not _NAME.fullmatch(name):
        return (
            f"{name!r} is not a package name: use ASCII letters, digits, '-', '_' and '.', "
            "beginning and ending with a letter or digit"
        )
    package, plugin = words(name)["package"], words(name)["plugin"]
    if not package.isidentifier() or keyword.iskeyword(package) or keyword.iskeyword(plugin):
        return f"{name!r} would become the package {package!r}, which Python cannot import; choose another"
    if package in TAKEN:
        return f"{name!r} would hide the Python package {package!r}; choose another name"
    if plugin in DEFAULT_NAMES:
        return f"{name!r} would become the plugin {plugin!r}, a name that kube-scheduler uses; choose another"
    return ""


def _refuse_occupied(target: Path) -> None:
    if target.exists() and not target.is_dir():
        fail(f"{target} exists and is not a folder")
    if target.is_dir() and any(target.iterdir()):
        fail(f"{target} exists and is not empty; nothing was changed")


def _write(target: Path, chosen: dict[str, str]) -> None:
    templates = resources.files("moorage.cli") / "scaffold"
    for template, path in FILES.items():
        text = (templates / template).read_text(encoding="utf-8")
        file = target / Template(path).substitute(chosen)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(text).substitute(chosen), encoding="utf-8")


def _tell(target: Path, chosen: dict[str, str]) -> None:
    line(f"Made {target}: a package {chosen['name']} with the plugin {chosen['plugin']}.", style="green")
    line("Next:")
    line(f"  cd {target}")
    line('  python -m pip install -e ".[test]"   # makes the plugin known by its name')
    line("  python -m pytest                     # its test")
    line("  moorage check scheduler.yaml         # shows where it runs")
