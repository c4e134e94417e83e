"""The options of commands that take one profile of a scheduler configuration, own plugins included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure_file, find_plugin, plugin_folders
from moorage.cli.printing import current_folder, fail

Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration; without, the default profile."),
]
ProfileName = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="The schedulerName in --config; without, the first.")
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", metavar="MODULE:CLASS", help="Make a plugin known by its name. Repeatable."),
]
PluginPath = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIR", help="Where module:Class is looked for; without, the current folder. Repeatable."
    ),
]


def configured(
    config: Path | None, profile: str, plugins: list[str] | None, plugin_path: list[str] | None
) -> Configuration | None:
    """The configuration with its one profile; None: the command's default."""
    if config is None:
        if profile or plugins or plugin_path:
            fail("--profile, --plugin and --plugin-path belong to a configuration: name it with --config")
        return None
    return configured_by(config, profile, plugins, plugin_path)


def configured_by(
    config: Path, profile: str, plugins: list[str] | None, plugin_path: list[str] | None
) -> Configuration:
    """The configuration of a file with its one profile."""
    try:
        folders = plugin_folders(plugin_path) if plugin_path else current_folder()
        named = [find_plugin(reference, folders) for reference in plugins or ()]
        return configure_file(config, plugins=named, folders=folders).with_one_profile(profile)
    except MoorageError as error:
        fail(str(error))
