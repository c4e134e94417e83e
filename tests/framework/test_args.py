"""Arguments of outside plugins: mistakes are reported as those of the default plugins are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.api.meta import Int32
from moorage.api.problems import Problem, child, invalid, required
from moorage.app.configuration import configure
from moorage.config import ConfigError, dump, load
from moorage.framework import ArgsContext, FilterPlugin, PluginArgs
from tests.config.builders import text


class Args(PluginArgs):
    label: str = ""
    max_pods: Int32 = 0
    zones: tuple[str, ...] = ()

    def completed(self, context: ArgsContext) -> Args:
        return self if "zones" in context.written else Args(label=self.label, max_pods=self.max_pods, zones=("a",))

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if not self.label:
            yield required(child(path, "label"), "the label that names a rack")
        if self.max_pods < 0:
            yield invalid(child(path, "maxPods"), self.max_pods, "must be zero or positive")


class NodeRack(FilterPlugin):
    name = "NodeRack"
    Args = Args

    def filter(self, state, pod, node):
        return None


def read(source: str) -> Args:
    found = configure(source, plugins=[NodeRack]).profiles[0].plugin_args["NodeRack"]
    assert isinstance(found, Args)
    return found


def rack(args: str) -> str:
    return text(f"""
        profiles:
        - plugins: {{filter: {{enabled: [{{name: NodeRack}}]}}}}
          pluginConfig:
          - name: InterPodAffinity
            args: {{hardPodAffinityWeight: 101}}
          - name: NodeRack
            args: {args}
    """)


def test_all_mistakes_are_reported_at_once_with_their_place():
    with pytest.raises(ConfigError) as caught:
        configure(rack("{maxPods: -1, zones: 3, racks: 2}"), plugins=[NodeRack], source="scheduler.yaml")
    args = "profiles[0].pluginConfig[1].args"
    assert str(caught.value).splitlines() == [
        "scheduler.yaml: 5 problems",
        "  profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        f'  {args}.racks: unknown field "racks"',
        f"  {args}.zones: expected a list, got an integer",
        f"  {args}.label: Required value: the label that names a rack",
        f"  {args}.maxPods: Invalid value: -1: must be zero or positive",
    ]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("kind: NodeRackArgs", ""),
        ("kind: RackArgs", "were not of type NodeRackArgs"),
        ("apiVersion: kubescheduler.config.k8s.io/v1beta3", "is registered for version"),
    ],
)
def test_the_header_of_the_arguments_is_checked(header, problem):
    source = rack(f"{{label: rack, {header}}}").replace("101", "1")
    if not problem:
        assert read(source).label == "rack"
        return
    with pytest.raises(ConfigError, match=problem):
        configure(source, plugins=[NodeRack])


def test_defaults_that_depend_on_what_is_written_and_reading_back():
    found = configure(rack("{label: rack}").replace("101", "1"), plugins=[NodeRack])
    assert found.profiles[0].plugin_args["NodeRack"] == Args(label="rack", zones=("a",))
    types = found.registry.args_types()
    assert load(dump(found.config), types) == found.config
    assert read(rack("{label: rack, zones: []}").replace("101", "1")).zones == ()


def test_a_rule_that_breaks_is_a_problem_with_its_place():
    class Broken(PluginArgs):
        limit: Int32 = 0

        def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
            if context.feature_gate("NoSuchGate"):
                yield required(path)

    with pytest.raises(ConfigError) as caught:
        load(rack("{limit: 1}").replace("101", "1"), {"NodeRack": Broken})
    (problem,) = caught.value.problems
    assert str(problem) == ("profiles[0].pluginConfig[1].args: checking these arguments raised KeyError: 'NoSuchGate'")
