"""Arguments of plugins.

The `pluginConfig` of a plugin is decoded into its `Args`. Decoding is strict and collects every mistake:
unknown fields, wrong types, and the problems that `validate` finds.

    class NodeRackArgs(PluginArgs):
        label: str = "topology.example.com/rack"
        max_pods: Int32 = 0

        def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
            if self.max_pods < 0:
                yield invalid(child(path, "maxPods"), self.max_pods, "must be zero or positive")

    class NodeRack(FilterPlugin):
        name = "NodeRack"
        Args = NodeRackArgs

Attributes are snake_case; the fields of the file are camelCase.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Self

from moorage.api.meta import Record
from moorage.api.problems import Problem


class ArgsContext(NamedTuple):
    """What arguments may depend on besides their own fields."""

    feature_gate: Callable[[str], bool]
    """Returns whether a feature gate is on; raises KeyError for an unknown one."""
    written: Collection[str] = ()
    """The names of the fields that are present in the file."""


class PluginArgs(Record):
    """The base class of a plugin's arguments: an immutable record with defaults."""

    def completed(self, context: ArgsContext) -> Self:
        """Fill in the defaults that are not constants. Called before `validate`."""
        return self

    def validate(self, path: str, context: ArgsContext) -> Iterable[Problem]:
        """Return all problems, each with its field path below `path`."""
        return ()
