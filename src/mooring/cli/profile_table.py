"""One resolved profile as tables: who runs where, in which order, with which weight and arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from rich.table import Table

from mooring.cli.printing import console, line, printable
from mooring.config import PluginRef, ResolvedProfile
from mooring.config.wire import to_wire

OWN = "*"
"""Marks plugins that the file names itself; the others are kube-scheduler's defaults."""


def print_profile(profile: ResolvedProfile) -> None:
    """The plugins, then the arguments, then what is missing."""
    out = console()
    line(f"profile {profile.scheduler_name}", style="bold")
    out.print(_points(profile))
    if any(not ref.default for refs in profile.points.values() for ref in refs):
        line(f"{OWN} named in the file")
    args = shown_args(profile)
    if args:
        out.print(_args(args))
    if profile.missing:
        line(f"not built yet, left out of this profile: {', '.join(profile.missing)}", style="yellow")
    line("")


def shown_args(profile: ResolvedProfile) -> dict[str, Any]:
    """Arguments of the plugins that run, as they would stand in a file; plugins without any are left out."""
    plain = {name: _plain(profile.plugin_args.get(name)) for name in profile.plugin_names}
    return {name: args for name, args in plain.items() if args}


def _plain(args: object) -> Any:
    return to_wire(args) if isinstance(args, msgspec.Struct) else args


def _points(profile: ResolvedProfile) -> Table:
    table = Table()
    table.add_column("extension point", no_wrap=True)
    table.add_column("plugins, in order (weight)", overflow="fold")
    for point, refs in profile.points.items():
        table.add_row(point, ", ".join(_shown(ref) for ref in refs) or "-")
    return table


def _shown(ref: PluginRef) -> str:
    weight = f" ({ref.weight})" if ref.weight else ""
    return f"{printable(ref.name)}{'' if ref.default else OWN}{weight}"


def _args(plugins: Mapping[str, Any]) -> Table:
    table = Table("plugin", "argument", "value")
    for name, args in plugins.items():
        entries = args.items() if isinstance(args, Mapping) else [("", args)]
        for index, (key, value) in enumerate(entries):
            shown = json.dumps(value, ensure_ascii=False, default=str)
            table.add_row(printable(name) if index == 0 else "", printable(str(key)), printable(shown))
    return table
