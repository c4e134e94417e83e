"""The registry: mistakes of plugin classes show when they are registered, with everything that is wrong."""

from __future__ import annotations

import logging
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from moorage.api.resources import NODES, PODS
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.framework import (
    Access,
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ReusablePlugin,
    ScorePlugin,
    SortKeyPlugin,
    VectorFilterPlugin,
    VectorScorePlugin,
    hot,
)
from moorage.plugins.registry import DEFAULT
from moorage.runtime.registry import PluginError, Registry
from tests.scheduler.kit import config


class Good(FilterPlugin):
    name = "good"

    def filter(self, state, pod, node):
        return None


class Impostor(FilterPlugin):
    name = "good"

    def filter(self, state, pod, node):
        return None


class Nameless(FilterPlugin):
    def filter(self, state, pod, node):
        return None


class Empty(FilterPlugin, ScorePlugin):
    name = "empty"


class Misplaced(FilterPlugin):
    name = "misplaced"

    def filter_nodes(self, state, pod, nodes):
        return None

    def sign(self, pod):
        return ()


class Idle(ReservePlugin):
    name = "idle"


class NoPoint(Plugin):
    name = "no-point"


class BadArgs(Good):
    name = "bad-args"
    Args = dict


class NumberName(Good):
    name = 5  # type: ignore[assignment]


class NeedsADependency(Good):
    name = "needs-a-dependency"
    needs = (Access(Reads.PODS),)  # type: ignore[arg-type]


class NeedsAResource(Good):
    name = "needs-a-resource"
    needs = (PODS,)  # type: ignore[assignment]


class NeedsNoTuple(Good):
    name = "needs-no-tuple"
    needs = Access(PODS)  # type: ignore[assignment]


class NeedsAText(Good):
    name = "needs-a-text"
    needs = (Access(PODS, "list"),)  # type: ignore[arg-type]


class NeedsUnknownVerbs(Good):
    name = "needs-unknown-verbs"
    needs = (Access(PODS, ("lsit",)), Access(NODES, ("watch", "annotate")))


class Everything(FilterPlugin, QueueSortPlugin):
    Args = int


def test_a_name_taken_twice_names_both_classes_and_sources():
    registry = Registry([Good], source="built in")
    with pytest.raises(PluginError) as caught:
        registry.add(Impostor)
    text = str(caught.value)
    assert "duplicate plugin name 'good'" in text
    assert "tests.runtime.test_registry.Good (built in)" in text
    assert "tests.runtime.test_registry.Impostor (code)" in text


def test_the_same_class_twice_is_fine_and_keeps_its_first_source():
    registry = Registry([Good], source="built in")
    registry.add(Good)
    assert (list(registry), registry.source_of("good")) == (["good"], "built in")


MISTAKES = [
    pytest.param(5, ["5 is not a plugin"], id="no class"),
    pytest.param(dict, ["not a plugin", "moorage.framework.Plugin"], id="another class"),
    pytest.param(Good({}, None), ["not a plugin"], id="an instance"),  # type: ignore[arg-type]
    pytest.param(Nameless, ["has no `name`"], id="no name"),
    pytest.param(NumberName, ["has no `name`"], id="a number as name"),
    pytest.param(
        Empty,
        ["inherits FilterPlugin but defines no filter()", "inherits ScorePlugin but defines no score()"],
        id="points without their methods",
    ),
    pytest.param(
        Misplaced,
        [
            "inherits FilterPlugin but defines no filter()",
            "defines filter_nodes(), which is called only if it inherits VectorFilterPlugin",
            "defines sign(), which is called only if it inherits ReusablePlugin",
        ],
        id="methods of another form",
    ),
    pytest.param(Idle, ["inherits ReservePlugin but defines no reserve() or unreserve()"], id="idle Reserve"),
    pytest.param(NoPoint, ["implements no extension point"], id="no point"),
    pytest.param(BadArgs, ["`Args` must be a msgspec.Struct class or None"], id="args of another type"),
    pytest.param(
        NeedsADependency,
        ["`needs`: Access(Reads.PODS): the resource must be one of moorage.api.resources"],
        id="needs: a dependency as resource",
    ),
    pytest.param(NeedsAResource, ["`needs` must hold Access only, not pods"], id="needs: a resource without Access"),
    pytest.param(NeedsNoTuple, ["`needs` must be a tuple of Access"], id="needs: one Access alone"),
    pytest.param(NeedsAText, ["Access(pods): the verbs must be a tuple, not 'list'"], id="needs: one verb"),
    pytest.param(
        NeedsUnknownVerbs,
        [
            "Access(pods): unknown verb 'lsit' (did you mean \"list\"?)",
            "Access(nodes): unknown verb 'annotate' (known are get, list, watch, create, update, patch, delete)",
        ],
        id="needs: unknown verbs",
    ),
    pytest.param(Everything, ["filter()", "less()", "has no `name`", "`Args` must be"], id="everything at once"),
]


@pytest.mark.parametrize(("cls", "message"), MISTAKES)
def test_a_wrong_class_is_refused_with_all_that_is_wrong(cls, message):
    with pytest.raises(PluginError) as caught:
        Registry().add(cls, source="here")
    assert "here" in str(caught.value)
    for part in message:
        assert part in str(caught.value)


async def waits(self, *args):
    return None


async def yields(self, *args):
    yield None


PLAIN = [
    (PreEnqueuePlugin, "pre_enqueue"),
    (QueueSortPlugin, "less"),
    (SortKeyPlugin, "key"),
    (PreFilterPlugin, "pre_filter"),
    (PreFilterPlugin, "add_pod"),
    (PreFilterPlugin, "remove_pod"),
    (FilterPlugin, "filter"),
    (FilterPlugin, "events_to_register"),
    (VectorFilterPlugin, "filter_nodes"),
    (hot.PreparedFilterPlugin, "filter_for"),
    (PreScorePlugin, "pre_score"),
    (ScorePlugin, "score"),
    (ScorePlugin, "normalize_scores"),
    (VectorScorePlugin, "score_nodes"),
    (ReservePlugin, "reserve"),
    (ReservePlugin, "unreserve"),
    (PermitPlugin, "permit"),
    (PreBindPlugin, "pre_bind_pre_flight"),
    (ReusablePlugin, "sign"),
    (ReusablePlugin, "reads"),
]


@pytest.mark.parametrize("method", [waits, yields])
@pytest.mark.parametrize(("base", "name"), PLAIN)
def test_async_def_is_refused_where_a_plain_call_is_due(base, name, method):
    cls = type("Waits", (base,), {"name": "waits", name: method})
    with pytest.raises(PluginError) as caught:
        Registry().add(cls)
    assert "plugin tests.runtime.test_registry.Waits" in str(caught.value)
    assert f"{name}() is `async def`, but its answer is not awaited" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (PostFilterPlugin, "post_filter"),
        (PreBindPlugin, "pre_bind"),
        (BindPlugin, "bind"),
        (PostBindPlugin, "post_bind"),
    ],
)
def test_points_from_pre_bind_on_post_filter_and_run_may_be_async(base, name):
    cls = type("Waits", (base,), {"name": "waits", name: waits, "run": waits})
    assert list(Registry([cls])) == ["waits"]


def test_one_method_of_a_pair_is_enough():
    class Unreserves(ReservePlugin):
        name = "unreserves"

        def unreserve(self, state, pod, node_name):
            return None

    class Gate(PreEnqueuePlugin):
        name = "gate"

        def pre_enqueue(self, pod):
            return None

    registry = Registry([Unreserves, Gate, *DEFAULT])
    points = registry.implements()
    assert points["unreserves"] == {"reserve"}
    assert points["gate"] == {"preEnqueue"}
    assert points["TaintToleration"] == {"filter", "preScore", "score"}


def test_args_types_are_listed_for_those_that_have_one():
    class Args(msgspec.Struct):
        limit: int = 3

    class WithArgs(Good):
        name = "with-args"

    WithArgs.Args = Args
    assert Registry([Good, WithArgs]).args_types() == {"with-args": Args}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder on sys.path in which tests write modules."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("outside"):
            del sys.modules[name]


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(textwrap.dedent(text))


PLUGIN = """
from moorage.framework import FilterPlugin

class Outside(FilterPlugin):
    name = "outside"

    def filter(self, state, pod, node):
        return None
"""


def test_a_reference_is_followed_and_known_by_its_name(package):
    write(package, "outside_plugins.py", PLUGIN)
    registry = Registry()
    assert registry.follow("outside_plugins:Outside") == "outside"
    assert registry.aliases == {"outside_plugins:Outside": "outside"}
    assert registry.source_of("outside") == "outside_plugins:Outside"


REFERENCES = [
    pytest.param("no_such_module:X", "cannot import plugin", id="no module"),
    pytest.param("outside_plugins:Missing", "cannot import plugin", id="no class"),
    pytest.param("outside_plugins", "cannot import plugin", id="no class named"),
    pytest.param("outside_broken:X", "importing raised ZeroDivisionError", id="a module that breaks"),
    pytest.param("outside_plugins:FilterPlugin", "has no `name`", id="a base class"),
    pytest.param("json:dumps", "is not a plugin", id="a function"),
]


@pytest.mark.parametrize(("reference", "message"), REFERENCES)
def test_a_reference_that_fails_says_why(package, reference, message):
    write(package, "outside_plugins.py", PLUGIN)
    write(package, "outside_broken.py", "1 / 0")
    with pytest.raises(PluginError) as caught:
        Registry().follow(reference)
    assert message in str(caught.value)
    assert reference in str(caught.value)


def install(folder: Path, entries: str) -> None:
    """A distribution as pip leaves it behind."""
    info = folder / "outside_dist-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-dist\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[moorage.plugins]\n{entries}\n")


def test_entry_points_of_installed_packages_are_found(package):
    write(package, "outside_plugins.py", PLUGIN)
    install(package, "anything = outside_plugins:Outside")
    registry = Registry(DEFAULT)
    registry.discover()
    assert "outside" in registry
    assert registry.source_of("outside") == "entry point anything = outside_plugins:Outside"


def test_a_configuration_may_name_what_an_entry_point_offers(package):
    write(package, "outside_plugins.py", PLUGIN)
    install(package, "outside = outside_plugins:Outside")
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: outside}]}}}]"
    )
    assert "outside" in [ref.name for ref in configure(text).profiles[0].points["filter"]]
    with pytest.raises(ConfigError, match="outside"):
        configure(text, discover=False)


BROKEN = [
    ("x = outside_broken:X", "cannot be imported: ZeroDivisionError"),
    ("x = outside_none:X", "cannot be imported: ModuleNotFoundError"),
    ("x = outside_exits:X", "cannot be imported: SystemExit"),
    ("x = json:dumps", "is not a plugin"),
    ("x = tests.runtime.test_registry:Empty", "inherits FilterPlugin but defines no filter()"),
]


@pytest.fixture
def broken(package):
    """Installs a package with one broken entry point beside a good one."""
    write(package, "outside_plugins.py", PLUGIN)
    write(package, "outside_broken.py", "1 / 0")
    write(package, "outside_exits.py", "raise SystemExit(3)")
    return lambda entry: install(package, f"{entry}\noutside = outside_plugins:Outside")


@pytest.mark.parametrize(("entry", "message"), BROKEN)
def test_a_broken_entry_point_is_set_aside_with_a_warning_and_the_others_are_used(broken, caplog, entry, message):
    broken(entry)
    registry = Registry()
    with caplog.at_level(logging.WARNING):
        registry.discover()
    assert list(registry) == ["outside"]
    assert f"entry point {entry}" in registry.broken["x"]
    assert message in registry.broken["x"]
    [record] = caplog.records
    assert record.message == "An installed plugin cannot be used"
    assert registry.broken["x"] in str(vars(record))


@pytest.mark.parametrize(("entry", "message"), BROKEN)
def test_a_broken_entry_point_is_an_error_where_a_configuration_names_it(broken, entry, message):
    broken(entry)
    assert configure().profiles
    with pytest.raises(ConfigError) as caught:
        configure(config("x"))
    assert 'PreFilterPlugin "x" does not exist' in str(caught.value)
    assert f"entry point {entry}" in str(caught.value)
    assert message in str(caught.value)


def test_a_name_that_an_installed_package_takes_from_another_plugin_is_an_error_at_once(package):
    write(package, "outside_plugins.py", PLUGIN.replace('"outside"', '"NodeName"'))
    install(package, "x = outside_plugins:Outside")
    with pytest.raises(PluginError, match="duplicate plugin name"):
        Registry(DEFAULT).discover()
