"""Whether the methods of a plugin class can be called as the scheduler calls them.

Every call passes its arguments by position, so only the number of parameters counts. A decorated method is judged by
its wrapper, which may pass on other arguments than it gets.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from moorage.framework.points import Plugin

_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
    _KEYWORD_ONLY: "*, ",
}

SIMILAR = 0.75
"""How alike two names are, by difflib, if one is probably a misspelling of the other."""


def hooks_of(cls: type[Plugin], bases: Iterable[type[Plugin]]) -> dict[str, Callable[..., Any]]:
    """Return the methods that the scheduler calls on this class, as the base classes declare them."""
    found: dict[str, Callable[..., Any]] = {}
    for base in bases:
        if issubclass(cls, base):
            for name, method in vars(base).items():
                if name[0] != "_" and inspect.isfunction(method):
                    found.setdefault(name, method)
    return found


def wrong_signatures(cls: type[Plugin], hooks: dict[str, Callable[..., Any]]) -> list[str]:
    """Return a problem for every method, the constructor included, that cannot be called by position."""
    found = []
    for name, declared in {"__init__": Plugin.__init__, **hooks}.items():
        written = inspect.getattr_static(cls, name)
        if written is declared:
            continue
        given = list(inspect.signature(declared).parameters)[1:]
        if not callable(getattr(cls, name)):
            found.append(f"`{name}` must be a method, not {written!r}: write `{_line(name, given)}`")
        elif (own := _parameters(cls, name, written)) is not None and not _accepts(own, len(given)):
            shown = ", ".join(["self", *map(_plain, own.parameters.values())])
            found.append(f"{name}({shown}) is called with ({', '.join(given)}): write `{_line(name, given)}`")
    return found


def _line(name: str, given: Iterable[str]) -> str:
    return f"def {name}({', '.join(('self', *given))})"


def _parameters(cls: type, name: str, written: object) -> inspect.Signature | None:
    """Return the signature without `self`, or None for a callable whose signature is not known."""
    if not isinstance(written, staticmethod | classmethod) and not inspect.isfunction(written):
        return None
    signature = inspect.signature(getattr(cls, name), follow_wrapped=False)
    if not inspect.isfunction(written):
        return signature
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind in (_KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return signature.replace(parameters=[inspect.Parameter("self", _KEYWORD_ONLY)])  # does not even take `self`
    takes_all = parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
    return signature if takes_all else signature.replace(parameters=parameters[1:])


def _accepts(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _plain(parameter: inspect.Parameter) -> str:
    """Return a parameter without its annotation and default."""
    return f"{_STARS.get(parameter.kind, '')}{parameter.name}"


def misspelled(cls: type[Plugin], hook: str, hooks: Iterable[str]) -> str:
    """Return the method of the class that is probably meant to be `hook`; empty if there is none."""
    known = set(hooks)
    own = [name for name, member in _own_members(cls) if name not in known and inspect.isroutine(member)]
    return next(iter(difflib.get_close_matches(hook, own, n=1, cutoff=SIMILAR)), "")


def _own_members(cls: type) -> list[tuple[str, object]]:
    """Return the public members that the author wrote, without those of Moorage's base classes."""
    return [
        (name, member)
        for base in cls.__mro__
        if not base.__module__.startswith("moorage.framework") and base is not object
        for name, member in vars(base).items()
        if name[0] != "_"
    ]
