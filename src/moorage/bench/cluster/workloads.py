"""Workloads in the format of scheduler_perf, read from a file into steps.

A field that is not listed here is refused unless the user ignores it: without it, something else would be measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import yaml_text
from moorage.api.times import DurationError, parse_duration
from moorage.bench.cluster.templates import Json, Template, WorkloadError, fill

BUILT_IN = Path(__file__).with_name("workloads.yaml")
START = ("start-small", "start-filled")
"""The workloads of --start."""

_CASE = {"name", "description", "defaultPodTemplatePath", "workloadTemplate", "workloads", "labels"}
_CASE |= {"metricsCollectorConfig"}
_WORKLOAD = {"name", "params", "labels", "threshold", "thresholdMetricSelector"}
_FIELDS: dict[str, set[str]] = {
    "createNodes": {"nodeTemplatePath", "nodeTemplate", "labelNodePrepareStrategy", "uniqueNodeLabelStrategy"},
    "createNamespaces": {"prefix", "namespaceTemplatePath"},
    "createPods": {"podTemplatePath", "podTemplate", "podTemplates", "namespace", "collectMetrics"},
    "createPodSets": {"namespacePrefix", "createPodsOp"},
    "createAny": {"templatePath", "namespace"},
    "churn": {"mode", "number", "intervalMilliseconds", "templatePaths", "namespace"},
    "barrier": {"namespaces", "labelSelector", "stageRequirement"},
    "sleep": {"duration", "durationParam"},
}
"""The fields of each opcode besides those that several share."""
_FIELDS["createPods"].add("skipWaitToCompletion")
_COUNTED = {"createNodes", "createNamespaces", "createPods", "createPodSets", "createAny"}

BASE_NODE: Json = {"status": {"capacity": {"cpu": "4", "memory": "32Gi", "pods": "110"}}}
BASE_POD: Json = {
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
            }
        ]
    }
}


@dataclass(frozen=True)
class Step:
    """One operation of a workload."""

    number: int
    opcode: str
    count: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """What templates can use besides Index and Count."""

    @property
    def is_measured(self) -> bool:
        return bool(self.fields.get("collectMetrics"))

    @property
    def is_prepared(self) -> bool:
        """Whether the objects exist before the scheduler starts, and do not wait for it."""
        if self.opcode == "createPods":
            return not self.is_measured and not self.fields.get("skipWaitToCompletion")
        return self.opcode in _COUNTED

    @cached_property
    def digest(self) -> str:
        """A hash of everything that determines the objects of this step."""
        parts = [self.opcode, self.count, self.fields, [t.text for t in self.templates], self.values]
        return hashlib.sha256(msgspec.json.encode([self.number, *parts])).hexdigest()[:8]

    def render(self, index: int) -> Json:
        """Return the object with this index; several templates take turns."""
        template = self.templates[index % len(self.templates)]
        return template.render({**self.values, "Index": index, "Count": self.count})


@dataclass(frozen=True)
class ClusterWorkload:
    """The steps up to the pods that are measured."""

    name: str
    description: str
    steps: tuple[Step, ...]

    @property
    def nodes(self) -> int:
        return sum(step.count for step in self.steps if step.opcode == "createNodes")

    @property
    def running(self) -> int:
        """The number of pods that are bound before the scheduler starts."""
        return sum(step.count for step in self.steps if step.opcode == "createPods" and step.is_prepared)

    @property
    def measured(self) -> int:
        """The number of pods whose binds are measured."""
        return sum(step.count for step in self.steps if step.is_measured)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256("".join(step.digest for step in self.steps).encode()).hexdigest()[:12]


def read_workloads(
    path: Path = BUILT_IN,
    params: Mapping[str, Any] | None = None,
    names: Collection[str] = (),
    ignore: Collection[str] = (),
) -> list[ClusterWorkload]:
    """Read the workloads with these names, or all. A case with one unnamed workload has the name of the case.

    `params` replace the parameters of the same name in the file. Raises a WorkloadError.
    """
    reader = _Reader(path, dict(params or {}), frozenset(ignore))
    offered = dict(reader.offered())
    unknown = [name for name in names if name not in offered]
    if unknown:
        raise WorkloadError(f"There is no workload {unknown[0]!r}; known workloads are {', '.join(offered)}.")
    wanted = names or [name for name in offered if path != BUILT_IN or name not in START]
    return [reader.workload(name, *offered[name]) for name in wanted]


class _Reader:
    def __init__(self, path: Path, params: dict[str, Any], ignore: frozenset[str]) -> None:
        self._path, self._params, self._ignore = path, params, ignore

    def offered(self) -> Iterator[tuple[str, tuple[Json, Json]]]:
        """Return the cases with their workloads by name."""
        try:
            cases = yaml_text.load(self._path.read_bytes(), str(self._path))
        except OSError as error:
            raise WorkloadError(f"{self._path}: {error.strerror}; name a file of workloads") from error
        if not isinstance(cases, list) or not all(isinstance(case, dict) and case.get("name") for case in cases):
            raise WorkloadError(f"{self._path} is not a list of cases with names; see docs/benchmarks.md")
        for case in cases:
            for variant in case.get("workloads") or ():
                name = variant.get("name")
                yield f"{case['name']}/{name}" if name else case["name"], (case, variant)

    def workload(self, name: str, case: Json, variant: Json) -> ClusterWorkload:
        try:
            self._check(case, _CASE, "the case")
            self._check(variant, _WORKLOAD, "the workload")
            params = self._resolved(variant.get("params") or {})
            found = [
                step
                for number, op in enumerate(case.get("workloadTemplate") or ())
                for step in self._steps(number, op, params, case.get("defaultPodTemplatePath"))
            ]
            _check_order(found)
        except WorkloadError as error:
            raise WorkloadError(f"Workload {name} in {self._path}: {error}") from error
        return ClusterWorkload(name, str(case.get("description") or ""), tuple(found))

    def _check(self, given: Json, known: Collection[str], what: str) -> None:
        unknown = sorted(set(given) - set(known) - self._ignore)
        if unknown:
            raise WorkloadError(
                f"{what} has {', '.join(unknown)}, which this command cannot honour; change the file, or leave it out "
                f"with --ignore {' --ignore '.join(unknown)}"
            )

    def _resolved(self, params: Json) -> Json:
        resolved: Json = {}
        for name, value in {**params, **{k: v for k, v in self._params.items() if k in params}}.items():
            text = fill(str(value), resolved)
            resolved[name] = int(text) if text.isdecimal() else text
        return resolved

    def _steps(self, number: int, op: Json, params: Json, default_pod: str | None) -> Iterator[Step]:
        opcode = op.get("opcode", "")
        what = f"step {number} ({opcode})"
        if opcode in self._ignore:
            return
        if opcode not in _FIELDS:
            raise WorkloadError(f"{what} has an opcode that is not supported; supported are {', '.join(_FIELDS)}")
        shared = {"opcode", "count", "countParam", "templateParams"} if opcode in _COUNTED else {"opcode"}
        self._check(op, _FIELDS[opcode] | shared, what)
        count = _param(op, "count", params, what) if opcode in _COUNTED else 1
        if opcode == "createPodSets":
            inner = {**op["createPodsOp"], "opcode": "createPods"}
            for index in range(count):
                pods = {**inner, "namespace": f"{op.get('namespacePrefix', '')}-{index}"}
                yield from self._steps(number, pods, params, default_pod)
            return
        fields = {key: value for key, value in op.items() if key not in ("opcode", "count", "countParam")}
        if opcode == "sleep":
            fields["seconds"] = _seconds(_param(op, "duration", params, what), what)
        given = op.get("templateParams") or {}
        values = {key: _of(value, params, what) for key, value in given.items()}
        step = Step(number, opcode, count, fields, tuple(self._templates(op, default_pod, what)), values)
        if step.templates and step.opcode != "churn":
            step.render(0)  # mistakes in templates are found before anything is created
        yield step

    def _templates(self, op: Json, default_pod: str | None, what: str) -> Iterator[Template]:
        paths = [op[key] for key in op if key.endswith("TemplatePath") or key == "templatePath"]
        paths += op.get("templatePaths") or []
        inline = [op[key] for key in ("nodeTemplate", "podTemplate") if key in op] + (op.get("podTemplates") or [])
        if not paths and not inline:
            if op["opcode"] == "createPods" and default_pod:
                paths = [default_pod]
            elif op["opcode"] in ("createPods", "createNodes"):
                inline = [BASE_POD if op["opcode"] == "createPods" else BASE_NODE]
            elif op["opcode"] in ("createAny", "churn"):
                raise WorkloadError(f"{what} names no template; add templatePath")
        yield from (Template.of(obj, f"the template of {what}") for obj in inline)
        yield from (Template.read(self._path.parent / path) for path in paths)


def _check_order(steps: list[Step]) -> None:
    """Refuse an order that cannot be honoured: nodes and other objects are created before the scheduler has work."""
    waiting = ""
    for step in steps:
        what = f"step {step.number} ({step.opcode})"
        if waiting and step.is_prepared and step.opcode != "createPods":
            raise WorkloadError(f"{what} creates objects after {waiting}; move it before that step")
        if "measured" in waiting and not step.is_measured:
            raise WorkloadError(f"{what} comes after the measured pods; remove it")
        if not step.is_prepared:
            waiting = f"step {step.number}, which has the measured pods" if step.is_measured else f"step {step.number}"
    if sum(step.count for step in steps if step.is_measured) < 2:
        raise WorkloadError("it measures fewer than two pods; set collectMetrics: true in a createPods step")


def _param(op: Json, key: str, params: Json, what: str) -> Any:
    """Return the value of a field, or of the parameter that it names."""
    given = op.get(f"{key}Param")
    value = op.get(key, 1 if op["opcode"] == "createAny" else None) if given is None else _of(given, params, what)
    if value is None or (key == "count" and not isinstance(value, int)):
        raise WorkloadError(f"{what} needs a number in {key} or {key}Param; it is {value!r}")
    return value


def _of(value: Any, params: Json, what: str) -> Any:
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    if value[1:] not in params:
        raise WorkloadError(f"{what} uses the parameter {value}, which the workload does not set; add it to params")
    return params[value[1:]]


def _seconds(text: Any, what: str) -> float:
    try:
        return parse_duration(str(text))
    except DurationError as error:
        raise WorkloadError(f"{what}: {error}; write 500ms or 10s") from error
