"""Records: immutability, the properties of pods and nodes, and the table of resources."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

from collections.abc import Iterator

import msgspec
import pytest

from moorage.api import resources
from moorage.api.meta import ListMeta, ObjectMeta, Record
from moorage.api.node import Node, NodeSpec, NodeStatus
from moorage.api.pod import Pod, PodSchedulingGate, PodSpec, PodStatus, controller_of
from moorage.api.taints import Taint


def all_records(kind: type[Record] = Record) -> Iterator[type[Record]]:
    for child in kind.__subclasses__():
        yield child
        yield from all_records(child)


RECORDS = {kind.__qualname__: kind for kind in all_records() if kind.__module__.startswith("moorage.api.")}


@pytest.mark.parametrize("kind", RECORDS.values(), ids=RECORDS.keys())
def test_every_record_is_frozen_has_defaults_for_all_fields_and_says_what_it_is(kind):
    assert kind.__struct_config__.frozen
    assert not kind.__struct_config__.gc
    assert kind.__doc__
    assert msgspec.json.encode(kind()) == b"{}"


# Spellings that the camelCase rule alone would get wrong.
_ACRONYMS = ("cidr", "uuid", "ip", "ips", "id", "uri")


def test_acronyms_are_spelled_as_in_kubernetes():
    for kind in RECORDS.values():
        for field in msgspec.structs.fields(kind):
            words = field.name.split("_")
            if len(words) > 1 and words[-1] in _ACRONYMS:
                assert not field.encode_name.endswith(words[-1].capitalize()), f"{kind.__name__}.{field.name}"


def test_the_page_token_is_called_continue_on_the_wire():
    assert msgspec.json.encode(ListMeta(continue_="t")) == b'{"continue":"t"}'


def test_a_record_cannot_be_changed():
    with pytest.raises(AttributeError):
        Pod().spec = PodSpec()  # type: ignore[misc]


def test_defaults_of_a_pod():
    pod = Pod(metadata=ObjectMeta(name="a"))
    assert (pod.key, pod.priority, pod.scheduler_name) == ("a", 0, "default-scheduler")
    assert not pod.is_assigned
    assert not pod.is_terminating
    assert not pod.is_terminal
    assert not pod.is_gated
    assert controller_of(pod) is None


def test_properties_of_a_pod():
    pod = Pod(
        metadata=ObjectMeta(deletion_timestamp="2026-01-01T00:00:00Z", annotations={"k": "v"}),
        spec=PodSpec(node_name="n", priority=-5, scheduler_name="s", scheduling_gates=(PodSchedulingGate(name="g"),)),
        status=PodStatus(phase="Failed", nominated_node_name="m"),
    )
    assert (pod.priority, pod.scheduler_name, pod.nominated_node_name) == (-5, "s", "m")
    assert pod.is_assigned
    assert pod.is_terminating
    assert pod.is_terminal
    assert pod.is_gated
    assert pod.annotations == {"k": "v"}


def test_properties_of_a_node():
    taint = Taint(key="a", effect="NoSchedule")
    node = Node(spec=NodeSpec(unschedulable=True, taints=(taint,)), status=NodeStatus(allocatable={"cpu": "4"}))
    assert (node.taints, node.unschedulable, node.allocatable) == ((taint,), True, {"cpu": "4"})


@pytest.mark.parametrize(
    ("resource", "name", "api_version", "prefix"),
    [
        (resources.PODS, "pods", "v1", "/api/v1"),
        (resources.DEPLOYMENTS, "deployments.v1.apps", "apps/v1", "/apis/apps/v1"),
        (
            resources.custom("x.io", "v1alpha1", "foos", "Foo"),
            "foos.v1alpha1.x.io",
            "x.io/v1alpha1",
            "/apis/x.io/v1alpha1",
        ),
    ],
    ids=str,
)
def test_names_of_resources(resource, name, api_version, prefix):
    assert (name, api_version, prefix) == (str(resource), resource.api_version, resource.path_prefix)


def test_resources_are_found_by_kind_and_plural():
    assert len(resources.BY_KIND) == len(resources.ALL)
    for resource in resources.ALL:
        assert resources.by_kind(resource.kind) is resource
        assert resources.by_kind(resource.kind, resource.api_version) is resource
        assert resources.by_plural(resource.plural, resource.group) is resource
    assert resources.by_kind("Pod", "v2") is None
    assert resources.by_kind("Foo") is None
    assert resources.by_plural("pods", "apps") is None
