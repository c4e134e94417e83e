"""From a resolved profile to plugins: arguments, constructors that fail, and what a plugin may touch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.resources import NODES, PODS, PRIORITY_CLASSES
from moorage.api.versions import BEHAVIOURS
from moorage.config import ConfigError
from moorage.framework import Access, ActionType, ClusterEvent, FilterPlugin, PermitPlugin, Registration, ReusablePlugin
from moorage.framework import events as e
from moorage.framework.points import EXTENSION_POINTS, Plugin
from moorage.runtime.profile import registrations
from moorage.runtime.registry import PluginError
from moorage.runtime.reuse.signatures import Signer
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_priority_class
from tests.runtime.kit import cluster_with, handle_of, plugin_of
from tests.scheduler.kit import built, config


class Keeps(FilterPlugin, ReusablePlugin):
    name = "keeps"

    def filter(self, state, pod, node):
        return None


class Args(msgspec.Struct, forbid_unknown_fields=True):
    limit: int = 3
    names: tuple[str, ...] = ()


class WithArgs(Keeps):
    name = "with-args"
    Args = Args


def args(text: str) -> str:
    return config("with-args", extra=f"pluginConfig: [{{name: with-args, args: {text}}}]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(config("with-args"), Args(3, ()), id="defaults"),
        pytest.param(args("{limit: 5}"), Args(5, ()), id="one given"),
        pytest.param(args("{limit: 5, names: [a, b]}"), Args(5, ("a", "b")), id="all given"),
    ],
)
def test_args_are_decoded_and_defaulted(text, expected):
    assert plugin_of_built(text).args == expected


def plugin_of_built(text: str) -> Any:
    return built(text, [WithArgs]).engine.profiles["default-scheduler"].plugins["with-args"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{limit: many}", "limit", id="a wrong type"),
        pytest.param("{limmit: 5}", "limmit", id="an unknown field"),
        pytest.param("{names: [1]}", "names", id="a wrong type inside"),
        pytest.param("[]", "args", id="no mapping"),
    ],
)
def test_bad_args_are_a_config_error_that_names_the_field(text, message):
    with pytest.raises(ConfigError, match=message):
        built(args(text), [WithArgs])


def test_without_an_args_type_a_plain_mapping_is_handed_on():
    text = config("keeps", extra="pluginConfig: [{name: keeps, args: {a: [1, 2]}}]")
    assert built(text, [Keeps]).engine.profiles["default-scheduler"].plugins["keeps"].args == {"a": [1, 2]}
    assert built(config("keeps"), [Keeps]).engine.profiles["default-scheduler"].plugins["keeps"].args == {}


def test_all_constructors_that_fail_are_reported_at_once():
    def failing(mine: str) -> type[Keeps]:
        class Fails(Keeps):
            name = mine

            def __init__(self, args, handle):
                raise LookupError(f"{mine} has no model")

        return Fails

    with pytest.raises(PluginError) as caught:
        built(config("one", "two"), [failing("one"), failing("two")])
    text = str(caught.value)
    assert 'profile "default-scheduler": initializing plugin "one": LookupError: one has no model' in text
    assert 'initializing plugin "two": LookupError: two has no model' in text


def test_a_dry_run_in_the_constructor_is_refused_with_the_reason():
    class Eager(Keeps):
        name = "eager"

        def __init__(self, args, handle):
            super().__init__(args, handle)
            handle.dry_run()

    with pytest.raises(PluginError, match="cannot be used in the constructor"):
        built(config("eager"), [Eager])


# What a plugin may touch


class Reader(Keeps):
    name = "reader"
    needs = (
        Access(PRIORITY_CLASSES),
        Access(NODES, ("get",)),
        Access(PODS, ("patch",), "status"),
        Access(PODS, ("delete",)),
    )


ALLOWED = [
    pytest.param(lambda c: c.list(PRIORITY_CLASSES), id="list what is declared"),
    pytest.param(lambda c: c.get(NODES, "a"), id="get what is declared"),
    pytest.param(
        lambda c: c.patch(PODS, "p", {"status": {}}, namespace="default", subresource="status"), id="patch status"
    ),
    pytest.param(lambda c: c.delete(PODS, "p", namespace="default"), id="delete"),
]
REFUSED = [
    pytest.param(lambda c: c.list(PODS), "Access(<Pod>, ('list',))", id="another verb"),
    pytest.param(
        lambda c: c.create(PRIORITY_CLASSES, make_priority_class("x", 1)),
        "Access(<PriorityClass>, ('create',))",
        id="writing what may be read",
    ),
    pytest.param(
        lambda c: c.patch(PODS, "p", {}, namespace="default"), "Access(<Pod>, ('patch',))", id="the object itself"
    ),
    pytest.param(lambda c: c.bind("p", "default", "", "a"), "('create',), subresource=\"binding\")", id="binding"),
    pytest.param(lambda c: c.replace(NODES, make_node("a")), "Access(<Node>, ('update',))", id="replace"),
    pytest.param(lambda c: anext(c.watch(NODES, resource_version="")), "Access(<Node>, ('watch',))", id="watch"),
]


@pytest.mark.parametrize("call", ALLOWED)
def test_declared_access_passes(call):
    with cluster_with(Reader) as cluster:
        cluster.add(make_node("a"), make_pod("p", scheduler="nobody"))
        cluster.run(call(handle_of(cluster, "reader").client))


@pytest.mark.parametrize(("call", "line"), REFUSED)
def test_undeclared_access_is_refused_with_the_line_to_add(call, line):
    async def use() -> None:
        await call(handle_of(cluster, "reader").client)

    with cluster_with(Reader) as cluster:
        cluster.add(make_node("a"), make_pod("p", scheduler="nobody"))
        before = len(cluster.faults.calls)
        with pytest.raises(PermissionError) as caught:
            cluster.run(use())
        assert len(cluster.faults.calls) == before, "nothing is sent"
    assert "plugin 'reader'" in str(caught.value)
    assert line in str(caught.value)


def test_listers_serve_declared_kinds_only():
    with cluster_with(Reader) as cluster:
        cluster.add(make_priority_class("high", 100))
        cluster.settle()
        handle = handle_of(cluster, "reader")
        assert [found.name for found in handle.lister(PRIORITY_CLASSES).list()] == ["high"]
        assert handle.assume_cache(PRIORITY_CLASSES) is handle.assume_cache(PRIORITY_CLASSES)
        for ask in (handle.lister, handle.assume_cache):
            with pytest.raises(PermissionError, match="nodes"):
                ask(NODES)


def test_what_is_shared_exists_once_per_process():
    text = config("keeps", profiles=["one", "two"])
    with cluster_with(Keeps, text=text) as cluster:
        handles = [p.plugins["keeps"].handle for p in cluster.scheduler.engine.profiles.values()]
        assert [handle.profile_name for handle in handles] == ["one", "two"]
        made: list[int] = handles[0].shared("k", list)
        assert handles[1].shared("k", list) is made
        assert handles[0].nodes.names == []
        assert handles[0].node("none") is None


# What events wake whom


class Registers(PermitPlugin):
    name = "registers"
    given: Any = None

    def permit(self, state, pod, node_name):
        return None

    def events_to_register(self):
        return self.given


def registered(given: Any, extenders: bool = False, version: str = "1.36") -> dict[str, list[tuple[str, ActionType]]]:
    plugin = type("R", (Registers,), {"given": given})({}, None)
    known = registrations([plugin], extenders=extenders, behaviour=BEHAVIOURS[version])
    return {name: [(str(r.event.resource), r.event.action) for r in rows] for name, rows in known.items()}


TEN = [(str(resource), ActionType.ALL) for resource in e.WITHOUT_REGISTRATION]
TAINT, ADD = ActionType.UPDATE_NODE_TAINT, ActionType.ADD


def event(resource: Any, action: ActionType) -> Registration:
    return Registration(ClusterEvent(resource, action))


REGISTRATIONS = [
    pytest.param(None, TEN, id="none declared: the ten common kinds"),
    pytest.param([], [], id="an empty list: nothing ever wakes it"),
    pytest.param([event(e.NODE, ADD)], [("Node", ADD), ("Node", TAINT)], id="Node/Add brings UpdateNodeTaint"),
    pytest.param([event(e.NODE, ADD | TAINT)], [("Node", ADD | TAINT)], id="unless it has it"),
    pytest.param(
        [event(e.NODE, ADD), event(e.NODE, ActionType.UPDATE)],
        [("Node", ADD), ("Node", ActionType.UPDATE)],
        id="Update includes taints",
    ),
    pytest.param([event(e.CSI_NODE, ADD)], [("CSINode", ADD)], id="other kinds stay as they are"),
    pytest.param([event(e.NODE, ActionType.DELETE)], [("Node", ActionType.DELETE)], id="no Add, no taint"),
]


@pytest.mark.parametrize(("given", "expected"), REGISTRATIONS)
def test_registrations(given, expected):
    assert registered(given) == {"registers": expected}
    if given:  # since 1.37 nothing is added
        declared = [(str(entry.event.resource), entry.event.action) for entry in given]
        assert registered(given, version="1.37") == {"registers": declared}


def test_the_added_taint_event_has_no_hint():
    plugin = type("R", (Registers,), {"given": [event(e.NODE, ADD)]})({}, None)
    rows = registrations([plugin], extenders=False, behaviour=BEHAVIOURS["1.36"])
    assert [row.hint for row in rows["registers"]] == [None, None]


def test_neither_volume_attachments_nor_resource_slices_are_common():
    assert not {"VolumeAttachment", "ResourceSlice"} & {name for name, _ in TEN}


def test_extenders_are_woken_by_the_common_kinds():
    assert registered([], extenders=True)["Extender"] == TEN


# Signatures


class Signs(Keeps):
    name = "signs"

    def sign(self, pod):
        return pod.labels.get("app")


SAME = [
    pytest.param((Signs,), {"labels": {"app": "x"}}, {"labels": {"app": "x"}, "priority": 5}, True, id="all sign"),
    pytest.param((Signs,), {"labels": {"app": "x"}}, {"labels": {"app": "y"}}, False, id="another sign"),
    pytest.param((Signs,), {}, {"priority": 5}, False, id="no sign for this pod: by template"),
    pytest.param((Signs, Keeps), {"labels": {"app": "x"}}, {"labels": {"app": "x"}}, True, id="equal templates"),
    pytest.param(
        (Signs, Keeps), {"labels": {"app": "x"}}, {"labels": {"app": "x", "b": "c"}}, False, id="other labels"
    ),
    pytest.param((Keeps,), {}, {"namespace": "other"}, False, id="another namespace"),
    pytest.param((Keeps,), {"owner": "ReplicaSet/a"}, {"owner": "ReplicaSet/b"}, False, id="another owner"),
    pytest.param((Keeps,), {"cpu": "1"}, {"cpu": "2"}, False, id="another spec"),
    pytest.param((Keeps,), {"annotations": {"a": "b"}}, {}, True, id="annotations do not count"),
]


@pytest.mark.parametrize(("plugins", "first", "second", "same"), SAME)
def test_pods_that_share_hints(plugins, first, second, same):
    scheduler = built(config(*(plugin.name for plugin in plugins)), plugins)
    signer = Signer(scheduler.engine.profiles["default-scheduler"])
    signatures = [signer.signature(make_pod(name, **options)) for name, options in (("a", first), ("b", second))]
    assert (signatures[0] == signatures[1]) is same
    assert len({*signatures}) == (1 if same else 2)


def test_two_profiles_never_share():
    scheduler = built(config("keeps", profiles=["one", "two"]), [Keeps])
    one, two = (Signer(profile).signature(make_pod("p")) for profile in scheduler.engine.profiles.values())
    assert one != two


def test_the_instance_is_found_by_name_in_a_running_cluster():
    with cluster_with(Keeps) as cluster:
        assert isinstance(plugin_of(cluster, "keeps"), Keeps)


def test_a_profile_has_the_plugins_of_every_extension_point():
    profile = built(config("keeps"), [Keeps]).engine.profiles["default-scheduler"]
    for point in EXTENSION_POINTS:
        found = getattr(profile, point.attribute)
        plugins = [found] if isinstance(found, Plugin) else [*found]
        assert all(isinstance(plugin, point.plugin) for plugin in plugins), point.label
