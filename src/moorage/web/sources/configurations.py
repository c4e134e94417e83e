"""Configurations as the page Configuration shows them: what one means, or what is wrong with it."""

from __future__ import annotations

from moorage import config
from moorage.app import checks
from moorage.app.configuration import Configuration, build_registry, configure
from moorage.config import ConfigError
from moorage.runtime.registry import Registry
from moorage.web.source import Json

MOST_CHARACTERS = 1 << 20


def described(configuration: Configuration) -> Json:
    return {"problems": [], "text": config.dump(configuration.config), **checks.describe(configuration)}


def check(text: str, known: Registry | None = None) -> Json:
    """What `moorage check` would say. A text that is pasted into a page imports no modules: plugins are those
    that are installed, and those of `known`."""
    if len(text) > MOST_CHARACTERS:
        return {"problems": [f"the text has {len(text)} characters; at most {MOST_CHARACTERS} are read"]}
    try:
        if references := config.plugin_references(text):
            name = sorted(references)[0]
            return {
                "problems": [
                    f"{name}: write the plugin's name here; `moorage check FILE` follows module:Class"
                ]
            }
        own = set(known or ()) - set(build_registry())
        found = configure(text, plugins=[known[name] for name in sorted(own)] if known else ())
        problems = checks.find_mistakes(found)
    except ConfigError as error:
        problems = list(error.problems)
    if problems:
        return {"problems": [str(problem) for problem in problems]}
    return described(found)
