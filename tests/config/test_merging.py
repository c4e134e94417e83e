"""Joining default and chosen plugins, with every quirk of upstream's mergePluginSet."""

from collections.abc import Iterable

import pytest

from moorage import config
from moorage.config.defaults import default_plugins, merge, merge_set
from moorage.config.gates import DEFAULT_GATES
from moorage.config.types import Plugin, Plugins, PluginSet
from tests.config.builders import load, profile, text


def entries(*written: str) -> tuple[Plugin, ...]:
    """`a` or `a:3` -> plugins."""
    return tuple(Plugin(name=name, weight=int(weight or 0)) for name, _, weight in (w.partition(":") for w in written))


def written(plugins: Iterable[Plugin]) -> list[str]:
    return [f"{p.name}:{p.weight}" if p.weight else p.name for p in plugins]


@pytest.mark.parametrize(
    ("enabled", "disabled", "merged"),
    [
        pytest.param([], [], ["a", "b:2", "c"], id="nothing chosen keeps the defaults"),
        pytest.param(["x"], [], ["a", "b:2", "c", "x"], id="new ones come last"),
        pytest.param(["y", "x"], [], ["a", "b:2", "c", "y", "x"], id="in their own order"),
        pytest.param([], ["b"], ["a", "c"], id="disabled by name"),
        pytest.param([], ["*"], [], id="all disabled"),
        pytest.param(["x"], ["*"], ["x"], id="all disabled, one enabled"),
        pytest.param(["b:5"], [], ["a", "b:5", "c"], id="replaced in place, with the new weight"),
        pytest.param(["b"], [], ["a", "b", "c"], id="replaced in place, weight gone"),
        pytest.param(["c", "b:5"], [], ["a", "b:5", "c"], id="replacing does not reorder"),
        pytest.param(["b:5"], ["b"], ["a", "c", "b:5"], id="disabled and enabled moves to the end"),
        pytest.param(["c", "a"], ["*"], ["c", "a"], id="all disabled and enabled anew sets the order"),
        pytest.param(["x", "x"], [], ["a", "b:2", "c", "x", "x"], id="twice stays twice"),
        pytest.param(["b:5", "b:6"], [], ["a", "b:6", "c", "b:5"], id="the last of two replaces, the other stays"),
        pytest.param([], ["nobody"], ["a", "b:2", "c"], id="disabling what is not there"),
    ],
)
def test_merging_one_set(enabled, disabled, merged):
    defaults = PluginSet(enabled=entries("a", "b:2", "c"))
    result = merge_set(defaults, PluginSet(enabled=entries(*enabled), disabled=entries(*disabled)))
    assert written(result.enabled) == merged
    assert written(result.disabled) == disabled


def test_defaults_may_disable_too():
    result = merge_set(PluginSet(enabled=entries("a", "b"), disabled=entries("b")), PluginSet(disabled=entries("x:3")))
    assert result == PluginSet(enabled=entries("a"), disabled=entries("x", "b"))


def test_merging_again_changes_nothing():
    defaults = PluginSet(enabled=entries("a", "b:2", "c"))
    once = merge_set(defaults, PluginSet(enabled=entries("c:4", "x"), disabled=entries("a")))
    assert merge_set(defaults, once) == once


def test_every_set_is_merged_with_its_counterpart():
    defaults = Plugins(multi_point=PluginSet(enabled=entries("a")), score=PluginSet(enabled=entries("s")))
    custom = Plugins(score=PluginSet(disabled=entries("*")), permit=PluginSet(enabled=entries("p")))
    merged = merge(defaults, custom)
    assert merged == Plugins(
        multi_point=PluginSet(enabled=entries("a")),
        score=PluginSet(disabled=entries("*")),
        permit=PluginSet(enabled=entries("p")),
    )


DEFAULT_ORDER = [
    *("SchedulingGates", "PrioritySort", "NodeName", "NodeUnschedulable", "TaintToleration:3"),
    *("NodeAffinity:2", "NodePorts", "NodeResourcesFit:1", "VolumeRestrictions", "NodeVolumeLimits"),
    *("VolumeBinding", "VolumeZone", "PodTopologySpread:2", "InterPodAffinity:2", "DynamicResources:2"),
    *("DefaultPreemption", "NodeResourcesBalancedAllocation:1", "ImageLocality:1", "DefaultBinder"),
    "NodeDeclaredFeatures",
]


def test_the_default_plugins_of_v1():
    (default,) = load(text()).profiles
    assert written(default.plugins.multi_point.enabled) == DEFAULT_ORDER
    assert default.user_named == frozenset()


@pytest.mark.parametrize(
    ("version", "gates", "last"),
    [
        ("1.36", "NodeDeclaredFeatures=false", ["DefaultBinder"]),
        ("1.36", "GenericWorkload=true,GangScheduling=true", ["NodeDeclaredFeatures", "GangScheduling"]),
        ("1.37", "GenericWorkload=true", ["NodeDeclaredFeatures", "GangScheduling"]),
        (
            "1.36",
            "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
            ["NodeDeclaredFeatures", "TopologyPlacementGenerator", "PodGroupPodsCount:1"],
        ),
        (
            "1.37",
            "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
            ["NodeDeclaredFeatures", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount:1"],
        ),
    ],
)
def test_gates_add_and_remove_default_plugins(version, gates, last):
    plugins = default_plugins("v1", config.FeatureGates.parse(gates, version))
    assert written(plugins.multi_point.enabled)[-len(last) :] == last


def test_a_gate_may_put_a_plugin_before_another():
    gates = config.FeatureGates.parse("InPlacePodVerticalScalingSchedulerPreemption=true", "1.37")
    names = written(default_plugins("v1", gates).multi_point.enabled)
    assert names.index("DeferredPodScheduling") == names.index("NodeResourcesFit:1") - 1


def test_1_36_had_the_cordon_before_the_node_name():
    names = written(default_plugins("v1", config.FeatureGates.of("1.36")).multi_point.enabled)
    assert names.index("NodeUnschedulable") == names.index("NodeName") - 1
    assert sorted(names) == sorted(DEFAULT_ORDER)


@pytest.mark.parametrize(
    ("plugins", "named"),
    [
        pytest.param("filter: {enabled: [{name: NodeName}]}", {"NodeName"}, id="a default named at a point"),
        pytest.param("multiPoint: {enabled: [{name: x}]}", {"x"}, id="an outside plugin"),
        pytest.param(
            "multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}", {"TaintToleration"}, id="another weight"
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: TaintToleration, weight: 3}]}", set(), id="the default word for word"
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: NodeName}], disabled: [{name: '*'}]}", {"NodeName"}, id="the only one wanted"
        ),
        pytest.param("multiPoint: {disabled: [{name: NodeName}]}", set(), id="disabling does not ask for it"),
    ],
)
def test_what_the_user_asked_for_is_remembered(plugins, named):
    (loaded,) = load(profile(f"plugins: {{{plugins}}}")).profiles
    assert loaded.user_named == named


def test_reading_back_a_completed_configuration_keeps_who_asked_for_what():
    loaded = load(profile("plugins: {filter: {enabled: [{name: x}]}}"))
    again = load(config.dump(loaded))
    assert again.profiles[0].user_named == loaded.profiles[0].user_named == {"x"}


def test_default_plugins_do_not_depend_on_who_asks():
    assert default_plugins("v1beta3", DEFAULT_GATES) == default_plugins("v1", DEFAULT_GATES)
