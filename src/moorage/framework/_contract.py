"""Markers for the methods of the plugin base classes: which ones a plugin must define, and which ones it may.

The registry refuses a plugin class that lacks a required method. The runtime asks `writes` whether a plugin
defines an optional one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def required(method: F) -> F:
    """Mark a method that every plugin with this base class must define."""
    method.__required__ = True  # type: ignore[attr-defined]
    return method


def derived(method: F) -> F:
    """Mark a method that a plugin may define; `writes` tells whether it does."""
    method.__derived__ = True  # type: ignore[attr-defined]
    return method


def is_marked(method: object) -> bool:
    """Return whether a member of a base class is a method for plugins to define."""
    return hasattr(method, "__required__") or hasattr(method, "__derived__")


def writes(plugin: object, method: str) -> bool:
    """Return whether a plugin, or plugin class, defines an optional `method`."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return not hasattr(getattr(cls, method), "__derived__")


def missing(plugin: Any, method: str) -> TypeError:
    """Build the error for a required method that the plugin class does not define."""
    return TypeError(f"plugin {plugin.name!r} ({type(plugin).__qualname__}) does not define {method}()")
