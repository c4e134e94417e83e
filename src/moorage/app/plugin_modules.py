"""The modules of plugins: their source files, which of them a change concerns, and importing them again."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from moorage.framework.points import Plugin
from moorage.runtime.registry import folders_searched

OWN_PACKAGE = __name__.partition(".")[0]
NO_BYTECODE = str(Path(os.devnull) / "no-compiled-files")


def modules_of(plugins: Iterable[type[Plugin]]) -> dict[str, ModuleType]:
    """Return the imported modules of the packages of these plugins, and of other packages in the folders where plugins
    are searched, but not of Moorage itself."""
    known = dict(sys.modules)
    packages = {plugin.__module__.partition(".")[0] for plugin in plugins}
    packages |= {name for name, module in known.items() if "." not in name and _in_folders(module)}
    packages -= {OWN_PACKAGE, "__main__"}
    return {name: module for name, module in known.items() if name.partition(".")[0] in packages}


def _in_folders(module: ModuleType) -> bool:
    file = _file(module)
    if file is None:
        return False
    root = file.parent.parent if file.name == "__init__.py" else file.parent
    return str(root) in folders_searched()


def files_of(modules: Iterable[ModuleType]) -> list[Path]:
    """Return the source files of these modules."""
    return sorted(file for module in modules if (file := _file(module)) is not None)


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def concerned(modules: Mapping[str, ModuleType], files: Collection[Path]) -> dict[str, ModuleType]:
    """Return the modules that a change of these files concerns: their own, those that import one of them, directly or
    not, and everything inside a package that is imported again."""
    found = {name for name, module in modules.items() if _file(module) in files}
    imports = {name: _imports(name, module) for name, module in modules.items()} if found else {}
    while True:
        inside = {name for name in modules if any(name.startswith(f"{package}.") for package in found)}
        more = inside | {name for name, imported in imports.items() if imported & found}
        if more <= found:
            return {name: module for name, module in modules.items() if name in found}
        found |= more


def _imports(name: str, module: ModuleType) -> set[str]:
    """Return the names that the source of a module imports; some of them are not modules."""
    file, found = _file(module), set[str]()
    package = name if file is not None and file.name == "__init__.py" else name.rpartition(".")[0]
    try:
        tree = ast.parse(file.read_bytes()) if file is not None else None
    except (OSError, SyntaxError, ValueError):
        tree = None  # it cannot be imported either, and the error is reported there
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found | {each.rpartition(".")[0] for each in found if "." in each}


@contextmanager
def fresh_imports(modules: dict[str, ModuleType]) -> Iterator[None]:
    """Import these modules again from their sources inside the block. An error restores the old modules."""
    for name in modules:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    before = sys.pycache_prefix, sys.dont_write_bytecode
    # Bytecode is matched to its source by seconds, so it could hide a newer source.
    sys.pycache_prefix, sys.dont_write_bytecode = NO_BYTECODE, True
    try:
        yield
    except BaseException:
        sys.modules.update(modules)
        raise
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = before
