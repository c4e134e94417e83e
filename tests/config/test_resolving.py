"""From a configuration to the plugins at each point: order, weights, and upstream's construction errors."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from moorage import config
from moorage.config.types import MULTI_POINT, UNSUPPORTED_POINTS, Plugin, Plugins, PluginSet, wire_fields
from moorage.framework.points import BUILT as BUILD_ORDER
from moorage.framework.points import BY_NAME
from tests.config.builders import load, problems, profile, resolve_problems, text
from tests.config.in_tree import DEFAULT_ORDER, IMPLEMENTS, with_plugins

NO_PLUGIN = " (no built-in or installed plugin has this name; install its package, or write module:Class)"


def points(
    source: str, implements: Mapping[str, frozenset[str]] = IMPLEMENTS, **options: Any
) -> dict[str, tuple[config.PluginRef, ...]]:
    (resolved,) = config.resolve(load(source), implements, **options)
    return resolved.points


def names(refs: Iterable[config.PluginRef]) -> list[str]:
    return [ref.name for ref in refs]


@pytest.mark.parametrize("point", BY_NAME)
def test_the_effective_order_of_the_default_configuration(point):
    assert names(points(text())[point]) == DEFAULT_ORDER.get(point, [])


def test_the_weights_of_the_default_configuration():
    assert {ref.name: ref.weight for ref in points(text())["score"]} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert {ref.weight for point, refs in points(text()).items() if point != "score" for ref in refs} == {0}


BASE = "multiPoint: {enabled: [{name: m1, weight: 4}, {name: m2}, {name: m3}], disabled: [{name: '*'}]}"
WORLD = with_plugins(
    m1="filter score", m2="filter score", m3="filter", o1="filter score", o2="filter", q="queueSort", b="bind"
)


@pytest.mark.parametrize(
    ("point", "order"),
    [
        pytest.param("", ["m1", "m2", "m3"], id="multiPoint alone"),
        pytest.param("enabled: [{name: o1}, {name: o2}]", ["m1", "m2", "m3", "o1", "o2"], id="own plugins last"),
        pytest.param(
            "enabled: [{name: o1}, {name: m3}, {name: o2}, {name: m2}]",
            ["m3", "m2", "m1", "o1", "o2"],
            id="overriding first in the point's order, then multiPoint, then the rest",
        ),
        pytest.param("disabled: [{name: m2}]", ["m1", "m3"], id="disabled at the point"),
        pytest.param("disabled: [{name: '*'}]", [], id="all disabled at the point"),
        pytest.param(
            "disabled: [{name: '*'}], enabled: [{name: m3}, {name: o1}]", ["m3", "o1"], id="all but the named"
        ),
        pytest.param(
            "disabled: [{name: m1}], enabled: [{name: m1}, {name: o1}]",
            ["m2", "m3", "m1", "o1"],
            id="disabled and enabled moves to the end",
        ),
        pytest.param("disabled: [{name: nobody}]", ["m1", "m2", "m3"], id="disabling a stranger"),
    ],
)
def test_expanding_multipoint(point, order):
    source = profile(
        f"plugins: {{{BASE}, filter: {{{point}}}, queueSort: {{enabled: [{{name: q}}]}}, "
        "bind: {enabled: [{name: b}]}}"
    )
    assert names(points(source, WORLD)["filter"]) == order


def test_disabling_in_multipoint_leaves_what_a_point_enables():
    source = profile("plugins: {multiPoint: {disabled: [{name: NodeName}]}, filter: {enabled: [{name: NodeName}]}}")
    assert names(points(source)["filter"])[-1] == "NodeName"


@pytest.mark.parametrize(
    ("plugins", "weight"),
    [
        pytest.param("multiPoint: {enabled: [{name: p, weight: 4}]}", 4, id="from multiPoint"),
        pytest.param("score: {enabled: [{name: p, weight: 5}]}", 5, id="from score"),
        pytest.param(
            "multiPoint: {enabled: [{name: p, weight: 4}]}, score: {enabled: [{name: p, weight: 5}]}",
            5,
            id="score wins",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: p, weight: 4}]}, score: {enabled: [{name: p}]}",
            1,
            id="score wins without a weight too",
        ),
        pytest.param("multiPoint: {enabled: [{name: p}]}", 1, id="absent counts as one"),
        pytest.param("score: {enabled: [{name: p, weight: 0}]}", 1, id="zero counts as one"),
    ],
)
def test_weights(plugins, weight):
    found = points(profile(f"plugins: {{{plugins}}}"), with_plugins(p="score filter"))["score"]
    assert {ref.name: ref.weight for ref in found}["p"] == weight


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            "filter: {enabled: [{name: NodeNam}]}",
            ['plugins.filter.enabled[0]: FilterPlugin "NodeNam" does not exist (did you mean "NodeName"?)'],
            id="unknown at a point",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: nobody}]}",
            ['plugins.multiPoint.enabled[0]: PreFilterPlugin "nobody" does not exist' + NO_PLUGIN],
            id="unknown in multiPoint",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: nobody}]}, preFilter: {disabled: [{name: '*'}]}",
            ['plugins.multiPoint.enabled[0]: FilterPlugin "nobody" does not exist' + NO_PLUGIN],
            id="unknown in multiPoint, first open point",
        ),
        pytest.param(
            "score: {enabled: [{name: NodeResourcesMostAllocated}]}",
            [
                'plugins.score.enabled[0]: ScorePlugin "NodeResourcesMostAllocated" does not exist '
                "(NodeResourcesFit took its place, with scoringStrategy.type MostAllocated)"
            ],
            id="gone",
        ),
        pytest.param(
            "score: {enabled: [{name: NodeName}]}",
            ['plugins.score.enabled[0]: plugin "NodeName" does not extend ScorePlugin plugin'],
            id="wrong point",
        ),
        pytest.param(
            "permit: {enabled: [{name: p}, {name: p}]}",
            ['plugins.permit.enabled[1]: plugin "p" already registered as "PermitPlugin"'],
            id="twice at a point",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: p}, {name: p}]}",
            ['plugins.multiPoint.enabled[1]: plugin "p" already registered as "PermitPlugin"'],
            id="twice in multiPoint",
        ),
        pytest.param(
            "queueSort: {disabled: [{name: '*'}]}",
            ['plugins.queueSort: only one queue sort plugin required for profile with scheduler name "x", but got 0'],
            id="no queue sort",
        ),
        pytest.param(
            "queueSort: {enabled: [{name: q}]}",
            ['plugins.queueSort: only one queue sort plugin required for profile with scheduler name "x", but got 2'],
            id="two queue sorts",
        ),
        pytest.param(
            "bind: {disabled: [{name: '*'}]}",
            ['plugins.bind: at least one bind plugin is needed for profile with scheduler name "x"'],
            id="no binder",
        ),
        pytest.param(
            "placementScore: {enabled: [{name: p}]}",
            ["plugins.placementScore.enabled: the extension point placementScore is not supported"],
            id="placement",
        ),
        pytest.param(
            "filter: {enabled: [{name: a}]}, score: {enabled: [{name: b}]}",
            [
                'plugins.filter.enabled[0]: FilterPlugin "a" does not exist' + NO_PLUGIN,
                'plugins.score.enabled[0]: ScorePlugin "b" does not exist' + NO_PLUGIN,
            ],
            id="all at once",
        ),
    ],
)
def test_construction_errors(plugins, expected):
    reported = resolve_problems(profile(f"plugins: {{{plugins}}}"), with_plugins(p="permit", q="queueSort"))
    assert reported == [f"profiles[0].{problem}" for problem in expected]


def test_errors_of_several_profiles_are_reported_together_under_the_name_of_the_file():
    loaded = load(
        text("""
        profiles:
        - {schedulerName: a, plugins: {filter: {enabled: [{name: p}]}}}
        - {schedulerName: b, plugins: {filter: {enabled: [{name: q}]}}}
        """)
    )
    with pytest.raises(config.ConfigError) as caught:
        config.resolve(loaded, IMPLEMENTS, source="f.yaml")
    assert str(caught.value).splitlines() == [
        "f.yaml: 2 problems",
        '  profiles[0].plugins.filter.enabled[0]: FilterPlugin "p" does not exist' + NO_PLUGIN,
        '  profiles[1].plugins.filter.enabled[0]: FilterPlugin "q" does not exist' + NO_PLUGIN,
    ]


def test_scores_that_could_overflow_are_refused():
    huge = PluginSet(enabled=(Plugin(name="p", weight=2**60),))
    loaded = load(text())
    broken = replace(
        loaded, profiles=(replace(loaded.profiles[0], plugins=replace(loaded.profiles[0].plugins, score=huge)),)
    )
    with pytest.raises(config.ConfigError, match="total score of Score plugins could overflow"):
        config.resolve(broken, with_plugins(p="score"))


BUILT = {name: IMPLEMENTS[name] for name in ("PrioritySort", "DefaultBinder", "NodeName")}


def test_defaults_that_are_not_built_are_omitted_and_listed():
    (resolved,) = config.resolve(load(text()), BUILT)
    assert {point: names(refs) for point, refs in resolved.points.items() if refs} == {
        "queueSort": ["PrioritySort"],
        "preFilter": ["NodeName"],
        "filter": ["NodeName"],
        "bind": ["DefaultBinder"],
    }
    assert len(resolved.missing) == 17
    assert "TaintToleration" in resolved.missing
    assert resolved.plugin_names == ("PrioritySort", "NodeName", "DefaultBinder")


def test_defaults_that_are_not_built_can_be_refused():
    with pytest.raises(config.ConfigError, match='PreFilterPlugin "TaintToleration" does not exist'):
        config.resolve(load(text()), BUILT, missing_defaults=False)


def test_a_default_that_the_user_names_must_exist():
    source = profile("plugins: {score: {enabled: [{name: TaintToleration, weight: 9}]}}")
    assert resolve_problems(source, BUILT) == [
        'profiles[0].plugins.score.enabled[0]: ScorePlugin "TaintToleration" does not exist' + NO_PLUGIN
    ]


def test_a_profile_may_lack_queue_sort_and_binder_only_because_they_are_not_built():
    (resolved,) = config.resolve(load(text()), {})
    assert resolved.points["queueSort"] == resolved.points["bind"] == ()
    assert {"PrioritySort", "DefaultBinder"} <= set(resolved.missing)


def test_references_know_whether_the_user_asked_for_them():
    found = points(profile("plugins: {filter: {enabled: [{name: p}]}}"), with_plugins(p="filter"))["filter"]
    assert {ref.name: ref.default for ref in found if ref.name in ("p", "NodeName")} == {"p": False, "NodeName": True}


def test_implements_may_be_a_function_that_raises_or_answers_none():
    loaded = load(text())
    expected = config.resolve(loaded, IMPLEMENTS)
    assert config.resolve(loaded, IMPLEMENTS.__getitem__) == expected
    assert config.resolve(loaded, IMPLEMENTS.get) == expected
    with pytest.raises(config.ConfigError, match=r'did you mean "mine"\?'):
        config.resolve(
            load(profile("plugins: {filter: {enabled: [{name: mime}]}}")), IMPLEMENTS.__getitem__, known=["mine"]
        )


@pytest.mark.parametrize(("own", "effective"), [("", 30), ("percentageOfNodesToScore: 0", 0)])
def test_the_percentage_of_a_profile_wins_over_the_global_one(own, effective):
    loaded = (
        load(profile(own or "{}") + "percentageOfNodesToScore: 30\n")
        if own
        else load(text("percentageOfNodesToScore: 30"))
    )
    assert config.resolve(loaded, IMPLEMENTS)[0].percentage_of_nodes_to_score == effective


def test_args_reach_the_profile_by_plugin_name():
    source = profile("pluginConfig: [{name: mine, args: {a: 1}}]")
    (resolved,) = config.resolve(load(source), IMPLEMENTS)
    assert resolved.plugin_args["mine"] == {"a": 1}
    assert "NodeResourcesFit" in resolved.plugin_args


EXTENDER = """
extenders:
- urlPrefix: http://x
  managedResources: [{name: a.b/c, ignoredByScheduler: true}, {name: a.b/d}]
"""


def test_resources_of_extenders_replace_those_that_a_profile_ignores():
    source = profile("pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [x.y/z]}}]") + EXTENDER
    (resolved,) = config.resolve(load(source), IMPLEMENTS)
    fit = resolved.plugin_args["NodeResourcesFit"]
    assert fit.ignored_resources == ("a.b/c",)  # type: ignore[attr-defined]


def test_resources_of_extenders_need_the_args_of_fit():
    source = profile("plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}") + EXTENDER
    assert resolve_problems(source, IMPLEMENTS) == [
        "profiles[0].pluginConfig: can't find NodeResourcesFitArgs in plugin config"
    ]


MODULE = "my.module:Mine"
ALIASED = f"""
plugins:
  filter: {{enabled: [{{name: "{MODULE}"}}]}}
  score: {{disabled: [{{name: "other:Thing.Inner"}}]}}
pluginConfig:
- {{name: "{MODULE}", args: {{a: 1}}}}
"""


def test_references_to_classes_are_found():
    assert config.plugin_references(profile(ALIASED)) == {MODULE, "other:Thing.Inner"}


@pytest.mark.parametrize(
    "source",
    ["", ":", "[]", "profiles: 1", "profiles: [1, {plugins: [], pluginConfig: [x, {name: 1}]}]", b"\xff"],
    ids=["empty", "colon", "list", "number", "odd shapes", "bytes"],
)
def test_files_that_cannot_be_read_mention_no_plugin(source):
    assert config.plugin_references(source) == frozenset()


def test_aliases_replace_references_when_loading():
    (loaded,) = load(profile(ALIASED), aliases={MODULE: "mine"}).profiles
    assert loaded.plugins.filter.enabled == (Plugin(name="mine"),)
    assert loaded.plugin_config[0] == config.PluginConfig(name="mine", args={"a": 1})
    assert loaded.user_named == {"mine"}


def test_aliases_replace_references_when_resolving():
    loaded = load(profile(ALIASED))
    (resolved,) = config.resolve(loaded, with_plugins(mine="filter"), aliases={MODULE: "mine"})
    assert names(resolved.points["filter"])[-1] == "mine"
    assert resolved.plugin_args["mine"] == {"a": 1}


def test_a_plugin_configured_under_two_spellings_is_configured_twice():
    source = profile(f'pluginConfig: [{{name: "{MODULE}"}}, {{name: mine}}]')
    with pytest.raises(config.ConfigError, match="repeated config for plugin mine"):
        config.resolve(load(source), IMPLEMENTS, aliases={MODULE: "mine"})


def test_every_plugin_set_is_known():
    assert set(Plugins().sets()) == {*BY_NAME, MULTI_POINT, *UNSUPPORTED_POINTS}
    assert [BY_NAME[name].built for name in BUILD_ORDER] == list(range(len(BY_NAME)))
    assert Plugins.of(Plugins().sets()) == Plugins()
    assert {wire_fields(Plugins)[name].name for name in BY_NAME} == {p.attribute for p in BY_NAME.values()}


def test_queue_sort_must_agree_before_anything_is_resolved():
    body = "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: x}]}}}]"
    assert problems(text(body)) == [
        "profiles[1].plugins.queueSort: Invalid value: []: must be the same for all profiles"
    ]
