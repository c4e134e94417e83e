"""Configurations as the page Configuration shows them: what one means, or what is wrong with it."""

from __future__ import annotations

from moorage import config
from moorage.app import checks
from moorage.app.configuration import Configuration, build_registry, configure
from moorage.config import ConfigError
from moorage.endpoints.answers import CheckedConfiguration, ConfigurationAnswer
from moorage.endpoints.v1.configuration import describe
from moorage.runtime.registry import Registry

MAX_CHARACTERS = 1 << 20


def described(configuration: Configuration) -> ConfigurationAnswer:
    """Return a configuration that is not that of a running scheduler."""
    found = describe(configuration, config.dump(configuration.config))
    return ConfigurationAnswer(
        text=found.text, notes=found.notes, warnings=found.warnings, profiles=found.profiles
    )


def check(text: str, known: Registry | None = None) -> CheckedConfiguration:
    """Check a configuration as `moorage check` does. A text that is pasted into a page imports no modules: it
    may use the plugins that are installed, and those of `known`."""
    if len(text) > MAX_CHARACTERS:
        return _wrong(f"The text has {len(text)} characters; the limit is {MAX_CHARACTERS}.")
    try:
        if references := config.plugin_references(text):
            name = sorted(references)[0]
            return _wrong(
                f"{name}: use the plugin's name here; only `moorage check FILE` imports module:Class."
            )
        own = set(known or ()) - set(build_registry())
        found = configure(text, plugins=[known[name] for name in sorted(own)] if known else ())
        problems = checks.mistakes(found)
    except ConfigError as error:
        problems = list(error.problems)
    return _wrong(*map(str, problems)) if problems else describe(found, config.dump(found.config))


def _wrong(*problems: str) -> CheckedConfiguration:
    return CheckedConfiguration(error="; ".join(problems), problems=problems)
