"""`moorage new`: creates a working plugin package as a starting point."""

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
"""Template → path of the file."""
TAKEN = sys.stdlib_module_names | {"moorage", "msgspec", "numpy", "pytest", "rich", "typer", "yaml", "tests"}
"""Packages that a new package must not shadow."""
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the package, such as gpu-quota.")],
    directory: Annotated[Path | None, typer.Option(metavar="DIR", help="Target folder (default: NAME).")] = None,
) -> None:
    """Create a plugin package with a plugin, a configuration, a test and packaging.

    After [bold]pip install[/bold], configurations can refer to the plugin by name.
    """
    problem = name_problem(name)
    if problem:
        fail(problem)
    target = directory or Path(name)
    try:
        _refuse_occupied(target)
        _write(target, words(name))
    except OSError as error:
        fail(f"Cannot write {error.filename or target}: {error.strerror}.")
    _tell(target, words(name))


def words(name: str) -> dict[str, str]:
    """Return the values of the templates' placeholders."""
    parts = [part for part in re.split(r"[-_.]+", name) if part]
    return {
        "name": "-".join(parts).lower(),
        "package": "_".join(parts).lower(),
        "plugin": "".join(part[0].upper() + part[1:] for part in parts),
        "moorage": ".".join(moorage.__version__.split(".")[:2]),
    }


def name_problem(name: str) -> str:
    """Return why a package cannot have this name, or an empty string."""
    if not _NAME.fullmatch(name):
        return (
            f"{name!r} is not a package name. Use ASCII letters, digits, '-', '_' and '.', and begin and end "
            "with a letter or digit."
        )
    package, plugin = words(name)["package"], words(name)["plugin"]
    if not package.isidentifier() or keyword.iskeyword(package) or keyword.iskeyword(plugin):
        return f"{name!r} would become the package {package!r}, which Python cannot import. Choose another name."
    if package in TAKEN:
        return f"{name!r} would shadow the Python package {package!r}. Choose another name."
    if plugin in DEFAULT_NAMES:
        return f"{name!r} would become the plugin {plugin!r}, which kube-scheduler has. Choose another name."
    return ""


def _refuse_occupied(target: Path) -> None:
    if target.exists() and not target.is_dir():
        fail(f"{target} exists and is not a folder. Nothing was changed.")
    if target.is_dir() and any(target.iterdir()):
        fail(f"{target} exists and is not empty. Nothing was changed.")


def _write(target: Path, chosen: dict[str, str]) -> None:
    templates = resources.files("moorage.cli") / "scaffold"
    for template, path in FILES.items():
        text = (templates / template).read_text(encoding="utf-8")
        file = target / Template(path).substitute(chosen)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(text).substitute(chosen), encoding="utf-8")


def _tell(target: Path, chosen: dict[str, str]) -> None:
    line(f"Created {target}: the package {chosen['name']} with the plugin {chosen['plugin']}.", style="green")
    line("Next:")
    line(f"  cd {target}")
    line('  python -m pip install -e ".[test]"   # registers the plugin by name')
    line("  python -m pytest                     # runs its test")
    line("  moorage check scheduler.yaml         # shows where it runs")
