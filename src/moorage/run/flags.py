"""Reads a command line as Go's flag library does, and checks it against the table of flags.

`--name=value`, `--name value`, `--flag` for a boolean (which takes a value only after `=`), `-v=3` and `-v
3`. All mistakes are collected and reported together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.api import times
from moorage.api.errors import MoorageError
from moorage.api.problems import did_you_mean
from moorage.run.flag_table import FLAGS, SHORT, Flag, FlagKind

_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


class FlagError(MoorageError):
    """A command line with mistakes; the message has one line for each."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The values. Flags that were not given have their default."""

    given: Mapping[str, str]
    """Flag → the text of the user."""
    warnings: tuple[str, ...] = field(default=())

    def has(self, name: str) -> bool:
        return name in self.given

    def text(self, name: str) -> str:
        return self.given.get(name, FLAGS[name].default)

    def boolean(self, name: str) -> bool:
        return self.text(name) in _TRUE

    def number(self, name: str) -> int:
        return int(self.text(name))

    def items(self, name: str) -> tuple[str, ...]:
        return tuple(filter(None, (part.strip() for part in self.text(name).split(","))))

    def options(self, group: str, *, given: bool = False) -> dict[str, Any]:
        """Return the options of a group, as the table names them; with `given`, only of flags that were given."""
        return {
            option: self._value(flag)
            for flag in reversed(FLAGS.values())
            for target, _, option in [flag.to.partition(".")]
            if target == group and (not given or self.has(flag.name))
        }

    def _value(self, flag: Flag) -> Any:
        match flag.kind:
            case FlagKind.BOOL:
                return self.boolean(flag.name)
            case FlagKind.INT:
                return self.number(flag.name)
            case FlagKind.FLOAT:
                return float(self.text(flag.name))
            case FlagKind.DURATION:
                return times.parse_duration(self.text(flag.name))
            case FlagKind.LIST:
                return self.items(flag.name)
            case FlagKind.TEXT:
                return self.text(flag.name)

    def everything(self) -> dict[str, str]:
        """Return every flag with its value, for /flagz."""
        return {name: self.text(name) for name in sorted(FLAGS)}


def parse(args: Sequence[str]) -> Flags:
    """Return the flags of a command line. Raises a FlagError that has all mistakes."""
    given: dict[str, str] = {}
    problems: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        flag, value, problem = _split(word)
        if flag is None:
            problems.append(problem)
            continue
        if value is None:
            if flag.kind is FlagKind.BOOL:
                value = "true"
            elif rest:
                value = rest.pop(0)
            else:
                problems.append(f"flag needs an argument: --{flag.name}")
                continue
        if problem := _mistake(flag, value):
            problems.append(problem)
        elif flag.kind is FlagKind.LIST and flag.name in given:
            given[flag.name] += f",{value}"
        else:
            given[flag.name] = value
    if problems:
        raise FlagError("\n".join(problems))
    return Flags(given, tuple(_warnings(given)))


def _split(word: str) -> tuple[Flag | None, str | None, str]:
    """Split a word of the command line into flag and value; without a flag, say what is wrong."""
    if not word.startswith("-") or word in ("-", "--"):
        return None, None, f'Unexpected argument "{word}". `moorage run` takes flags only; see --help.'
    name, equals, value = word.lstrip("-").partition("=")
    long = word.startswith("--")
    flag = FLAGS.get(name) if long else FLAGS.get(SHORT.get(name, ""))
    if flag is None:
        dashes = "--" if long else "-"
        guess = did_you_mean(name, FLAGS)
        return None, None, f"unknown flag: {dashes}{name}" + (f"; {guess}" if guess else "")
    return flag, value if equals else None, ""


def _mistake(flag: Flag, value: str) -> str:
    if flag.refused:
        return f"--{flag.name} is not supported: {flag.note}"
    expected = _expected(flag.kind, value)
    return f'invalid argument "{value}" for --{flag.name}: {expected}' if expected else ""


def _expected(kind: FlagKind, value: str) -> str:
    """Return what a value should be; empty if it is valid."""
    match kind:
        case FlagKind.BOOL:
            return "" if value in (*_TRUE, *_FALSE) else "expected true or false"
        case FlagKind.INT:
            digits = value.removeprefix("-")
            return "" if digits.isascii() and digits.isdigit() else "expected an integer"
        case FlagKind.FLOAT:
            return "" if _is_real(value) else "expected a number"
        case FlagKind.DURATION:
            return _duration_mistake(value)
        case _:
            return ""


def _is_real(value: str) -> bool:
    try:
        return value.isascii() and abs(float(value)) < 1e9
    except ValueError:
        return False


def _duration_mistake(value: str) -> str:
    try:
        seconds = times.parse_duration(value)
    except ValueError as error:
        return f"{error}; expected a duration such as 10s or 1m30s"
    return "" if seconds >= 0 else "expected a duration that is not negative"


def _warnings(given: Mapping[str, str]) -> list[str]:
    found = [f"--{name} has no effect: {FLAGS[name].note}" for name in given if FLAGS[name].note]
    if "config" in given:
        unread = {
            "kube-api-qps": "clientConnection",
            "kube-api-burst": "clientConnection",
            "profiling": "enableProfiling",
        }
        found += [
            f"--{name} is ignored because --config is set; use {field}"
            for name, field in unread.items()
            if name in given
        ]
    if given.get("port", "0") != "0":
        found.append("--port: there is no insecure port, so HTTPS is served there, as with --secure-port")
    return found
