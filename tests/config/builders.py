"""Short ways to write a configuration and to read what is said about it."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from moorage import config
from moorage.config.gates import DEFAULT_GATES, FeatureGates
from moorage.plugins.registry import DEFAULT
from moorage.runtime.registry import Registry

DATA = Path(__file__).parent / "data"


PUBLISHED_POLICY = (DATA / "policy.json").read_text()
"""A Policy as a tutorial prints it, with a comma too many."""
POLICY = PUBLISHED_POLICY.replace('"MatchInterPodAffinity"},', '"MatchInterPodAffinity"}')

IN_TREE = Registry(DEFAULT).args_types()
"""Args types of the default plugins."""


def load(
    content: str | bytes, args_types: Mapping[str, type] = {}, **options: Any
) -> config.KubeSchedulerConfiguration:
    """`config.load` as an application calls it: with the default plugins known."""
    return config.load(content, {**IN_TREE, **args_types}, **options)


def text(body: str = "", version: str = "v1") -> str:
    """A configuration file with this body."""
    header = f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
    return header + dedent(body)


def profile(body: str, version: str = "v1") -> str:
    """A configuration file with one profile."""
    return text("profiles:\n- schedulerName: x\n" + indent(dedent(body).strip("\n"), "  ") + "\n", version)


def args(plugin: str, body: str) -> str:
    """A configuration file with args for one plugin."""
    return profile(f"pluginConfig:\n- name: {plugin}\n  args:\n" + indent(dedent(body).strip("\n"), "    "))


def problems(
    source: str | bytes, args_types: Mapping[str, type] = {}, *, gates: FeatureGates = DEFAULT_GATES
) -> list[str]:
    """Everything that is said against a file; fails when nothing is."""
    with pytest.raises(config.ConfigError) as caught:
        load(source, args_types, gates=gates)
    return [str(problem) for problem in caught.value.problems]


def resolve_problems(source: str, implements: Mapping[str, frozenset[str]], **options: Any) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        config.resolve(load(source), implements, **options)
    return [str(problem) for problem in caught.value.problems]


def notes(source: str) -> list[str]:
    return [str(note) for note in load(source).notes]


def only_args(source: str, plugin: str, **options: Any) -> Any:
    """The args of a plugin in the first profile."""
    (found,) = [e.args for e in load(source, **options).profiles[0].plugin_config if e.name == plugin]
    return found
