"""Folders in which the modules of plugins are looked for, after everything that is installed.

A finder of its own behind all others, and not an entry of `sys.path`: a file in such a folder can never take
the place of an installed package, nor of one that an editable install finds by a hook.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class PluginFolders:
    """A finder of modules in folders that the user has named."""

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Python's protocol; `path` is set for modules inside packages, which are found by themselves."""
        return PathFinder.find_spec(name, self.folders, target) if path is None else None


_FINDER = PluginFolders()


def look_in(folders: Iterable[str]) -> None:
    """From now on modules are looked for in these folders too."""
    _FINDER.folders += [folder for folder in folders if folder not in _FINDER.folders]
    if _FINDER.folders and _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
