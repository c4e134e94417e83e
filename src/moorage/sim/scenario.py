"""Scenarios: YAML files that describe a cluster, its workloads, events and assertions.

This module defines and checks the fields; `generating` turns a scenario into a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from moorage.api.errors import QuantityError
from moorage.api.quantity import parse as parse_quantity
from moorage.api.taints import Taint
from moorage.sim.arrivals import Arrival, Lifetime
from moorage.sim.fields import FieldError, Fields, Rate, Seconds, parse_yaml, read_fields
from moorage.sim.workload import Comparison

Amount = str | int | float
ReadObjects = Callable[[str], list[dict[str, Any]]]
"""Returns the objects in a file that a scenario names."""


class NodeShape(Fields):
    """A number of identical nodes."""

    name: str = "node"
    """The name prefix. The nodes are `name-0`, `name-1` and so on."""
    count: int | None = None
    allocatable: Mapping[str, Amount] = {}
    """The allocatable resources. `pods` defaults to 110."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    zones: int = 0
    """Number of zones over which the nodes are spread, `zone-0` and so on. 0 means no zones."""


class PodTemplate(Fields):
    """A pod template, as in a Deployment."""

    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}


class PodWorkload(Fields):
    """Identical pods that arrive over time."""

    name: str
    shape: Mapping[str, Amount] | None = None
    """The requests of each pod. Use either this or `pod`."""
    pod: PodTemplate | None = None
    namespace: str = "default"
    labels: Mapping[str, str] = {}
    """Labels in addition to those of `pod`. `app` defaults to the name of the workload."""
    priority: int | None = None
    count: int | None = None
    """Number of pods in all or, with `arrival: at`, at each time."""
    rate: Rate | None = None
    """Pods per second. Without it, all pods arrive at the start."""
    arrival: Arrival = "fixed"
    burst: int = 1
    """Number of pods that arrive together, with `arrival: burst`."""
    at: tuple[Seconds, ...] = ()
    start: Seconds = Seconds(0)
    end: Seconds | None = None
    """The time after which no pod arrives. Defaults to the duration of the scenario."""
    lifetime: Lifetime | None = None
    """How long a pod runs. Without it, pods run forever."""
    kind: Literal["bare", "job", "deployment"] = msgspec.field(default="bare", name="as")
    """Whether pods are recreated: `bare` never, `job` unless the pod has completed, `deployment` always."""


class Selected(Fields):
    """A selection of the nodes that exist at that time."""

    match_labels: Mapping[str, str] = {}
    random: int | None = None
    """Number of nodes to draw by the seed. Without it, all nodes are selected."""


NodesNamed = str | tuple[str, ...] | Selected


class LabelNodes(Fields):
    """Changes the labels of nodes."""

    nodes: NodesNamed
    labels: Mapping[str, str | None]
    """Null removes a label."""


class TaintNodes(Fields):
    """Changes the taints of nodes."""

    nodes: NodesNamed
    add: tuple[Taint, ...] = ()
    remove: tuple[str, ...] = ()
    """Keys of taints to remove."""


class ScaleWorkload(Fields):
    """Changes the number of pods of a deployment."""

    workload: str
    count: int


class ObjectName(Fields):
    """The kind and name of an object."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""


class ScenarioEvent(Fields):
    """An event at a given time. Exactly one field besides `at` and `for` is set."""

    at: Seconds
    back_after: Seconds | None = msgspec.field(default=None, name="for")
    """With failNode: the time after which the node comes back."""
    fail_node: NodesNamed | None = None
    """Remove the node; its pods are lost."""
    remove_nodes: NodesNamed | None = None
    """Delete the pods of the node, then the node."""
    drain: NodesNamed | None = None
    """Cordon the node and delete its pods."""
    cordon: NodesNamed | None = None
    uncordon: NodesNamed | None = None
    label: LabelNodes | None = None
    taint: TaintNodes | None = None
    add_nodes: NodeShape | None = None
    scale: ScaleWorkload | None = None
    apply: tuple[str | dict[str, Any], ...] | None = None
    """Objects, or files of objects. An existing object is replaced."""
    delete: ObjectName | None = None

    def given(self) -> list[tuple[str, Any]]:
        """Return the fields that are set besides `at` and `for`."""
        values = ((name, getattr(self, field)) for field, name in ACTIONS.items())
        return [(name, value) for name, value in values if value is not None]

    @property
    def action(self) -> tuple[str, Any]:
        """Return the only field that is set."""
        return self.given()[0]


ACTIONS = {
    field.name: field.encode_name
    for field in msgspec.structs.fields(ScenarioEvent)
    if field.encode_name not in ("at", "for")
}
"""Attribute → field name, for all events."""


class AssertionFields(Fields):
    """An assertion about a measure."""

    measure: str
    op: Comparison
    value: float
    at: Seconds | None = None
    """The time of the assertion. Defaults to the end."""


class Scenario(Fields):
    """The whole file."""

    nodes: tuple[NodeShape, ...] = ()
    objects: tuple[str | dict[str, Any], ...] = ()
    """Objects, or files of objects, that exist from the start."""
    workloads: tuple[PodWorkload, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()
    assertions: tuple[AssertionFields, ...] = ()
    duration: Seconds | None = None
    seed: int = 0
    grace: Seconds = Seconds(0)
    sample_interval: Seconds | None = None
    measures: dict[str, str] = {}


def read(text: str | bytes, source: str, read_objects: ReadObjects) -> Scenario:
    """Read a scenario with the files that it names, and check it. Raise a FieldError if it is invalid."""
    scenario = read_fields(Scenario, parse_yaml(text, source), source)
    problems = list(_problems(scenario))
    if problems:
        raise FieldError("\n".join(f"{source}: {problem}" for problem in problems))
    events = tuple(
        msgspec.structs.replace(event, apply=_opened(event.apply, read_objects)) if event.apply else event
        for event in scenario.events
    )
    objects = _opened(scenario.objects, read_objects)
    return msgspec.structs.replace(scenario, objects=objects, events=events)


def _opened(given: tuple[str | dict[str, Any], ...], read_objects: ReadObjects) -> tuple[dict[str, Any], ...]:
    found: list[dict[str, Any]] = []
    for each in given:
        found += read_objects(each) if isinstance(each, str) else [each]
    return tuple(found)


def _problems(scenario: Scenario) -> Iterator[str]:
    for number, shape in enumerate(scenario.nodes):
        yield from _shape_problems(f"nodes[{number}]", shape)
    names: set[str] = set()
    for number, workload in enumerate(scenario.workloads):
        path = f"workloads[{number}]"
        if workload.name in names:
            yield f"{path}.name: {workload.name!r} is the name of two workloads; rename one of them"
        names.add(workload.name)
        yield from _workload_problems(path, workload, scenario.duration)
    for number, event in enumerate(scenario.events):
        yield from _event_problems(f"events[{number}]", event, scenario)


def _shape_problems(path: str, shape: NodeShape) -> Iterator[str]:
    if shape.count is not None and shape.count < 0:
        yield f"{path}.count: {shape.count} is less than 0"
    if not shape.allocatable:
        yield f"{path}.allocatable: required, such as {{cpu: 16, memory: 64Gi}}"
    yield from _amount_problems(f"{path}.allocatable", shape.allocatable)


def _amount_problems(path: str, amounts: Mapping[str, Amount]) -> Iterator[str]:
    for name, amount in amounts.items():
        try:
            parse_quantity(str(amount))
        except QuantityError as error:
            yield f"{path}.{name}: {error}"


def _workload_problems(path: str, workload: PodWorkload, duration: float | None) -> Iterator[str]:
    if (workload.shape is None) == (workload.pod is None):
        yield f"{path}: needs either shape (the requests of a pod) or pod (a template)"
    yield from _amount_problems(f"{path}.shape", workload.shape or {})
    if workload.lifetime is not None and (problem := workload.lifetime.problem()):
        yield f"{path}.lifetime: {problem}"
    if workload.burst < 1:
        yield f"{path}.burst: {workload.burst} is less than 1"
    if (workload.arrival == "at") != bool(workload.at):
        yield f"{path}: `arrival: at` requires times in `at`, and `at` requires `arrival: at`"
    if workload.rate is None and workload.arrival in ("poisson", "burst"):
        yield f"{path}.rate: required with `arrival: {workload.arrival}`"
    if workload.rate is None and not workload.at and workload.count is None:
        yield f"{path}.count: required without a rate"
    if workload.rate is not None and workload.count is None and workload.end is None and duration is None:
        yield f"{path}: pods would arrive forever; set count, end, or the duration of the scenario"
    if workload.kind == "deployment" and (workload.rate is not None or workload.at):
        yield f"{path}.as: all pods of a deployment exist from its start; remove rate and at"
    if workload.kind == "deployment" and workload.lifetime is not None and duration is None:
        yield f"{path}: pods would be recreated forever; set the duration of the scenario"


def _event_problems(path: str, event: ScenarioEvent, scenario: Scenario) -> Iterator[str]:
    given = [name for name, _ in event.given()]
    if len(given) != 1:
        yield f"{path}: needs one of {', '.join(ACTIONS.values())}; got {', '.join(given) or 'none'}"
    if event.back_after is not None and event.fail_node is None:
        yield f"{path}.for: is allowed with failNode only"
    if event.add_nodes is not None:
        yield from _shape_problems(f"{path}.addNodes", event.add_nodes)
    if event.scale is not None:
        known = [workload.name for workload in scenario.workloads if workload.kind == "deployment"]
        if event.scale.workload not in known:
            yield f"{path}.scale.workload: {event.scale.workload!r} is not a deployment; known are {known}"
