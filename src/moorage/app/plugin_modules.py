"""The modules of plugins: their source files, and importing them again."""

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

OWN_PACKAGE = __name__.partition(".")[0]
NO_BYTECODE = str(Path(os.devnull) / "no-compiled-files")


def modules_of(plugins: Iterable[type[Plugin]]) -> dict[str, ModuleType]:
    """Return the imported modules of the packages of these plugins.

    Includes other packages in the folders where plugins are searched, but not Moorage itself.
    """
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
