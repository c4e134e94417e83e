"""The modules of plugins: which files they come from, and how they are imported anew."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from moorage.framework.points import Plugin
from moorage.runtime.registry import folders_searched

OURS = __name__.partition(".")[0]
NOWHERE = str(Path(os.devnull) / "no-compiled-files")


def modules_of(plugins: Iterable[type[Plugin]]) -> dict[str, ModuleType]:
    """Whatever is imported of the packages of these plugins, and of others that lie in the folders in which
    plugins are searched; Moorage itself excepted."""
    known = dict(sys.modules)
    packages = {plugin.__module__.partition(".")[0] for plugin in plugins}
    packages |= {name for name, module in known.items() if "." not in name and _in_folders(module)}
    packages -= {OURS, "__main__"}
    return {name: module for name, module in known.items() if name.partition(".")[0] in packages}


def _in_folders(module: ModuleType) -> bool:
    file = _file(module)
    if file is None:
        return False
    root = file.parent.parent if file.name == "__init__.py" else file.parent
    return str(root) in folders_searched()


def files_of(modules: Iterable[ModuleType]) -> list[Path]:
    """Their source files."""
    return sorted(file for module in modules if (file := _file(module)) is not None)


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


@contextmanager
def imported_anew(modules: dict[str, ModuleType]) -> Iterator[None]:
    """What is imported inside is read from its source files. If it fails, these modules are back."""
    for name in modules:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    before = sys.pycache_prefix, sys.dont_write_bytecode
    # Compiled files differ by the second of their source, so one could stand for a newer source.
    sys.pycache_prefix, sys.dont_write_bytecode = NOWHERE, True
    try:
        yield
    except BaseException:
        sys.modules.update(modules)
        raise
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = before
