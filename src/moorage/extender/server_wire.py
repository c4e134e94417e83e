"""The JSON of the extender server: decode kube-scheduler's requests and encode responses. No I/O.

The keys are the field names of k8s.io/kube-scheduler/extender/v1, as Go writes them; unknown keys are ignored. An
invalid request raises a RequestError that names the field. Pods and nodes are kept as raw JSON: a node is sent back
unchanged, and a pod that is sent again, as in prioritize after filter, is not decoded again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from moorage.api import decoding
from moorage.api.errors import MoorageError, ObjectError
from moorage.api.plain_text import fit
from moorage.api.pod import Pod
from moorage.api.resources import PODS

_encode = msgspec.json.Encoder().encode
TEXT_BYTES = 32 * 1024
"""Of one message of a plugin."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
T = TypeVar("T")


class RequestError(MoorageError):
    """An invalid request."""


class _Wire(msgspec.Struct, rename="pascal"):
    """An object with Go's field names as keys."""


class _Named(msgspec.Struct):
    name: str


class _NamedNode(msgspec.Struct):
    metadata: _Named


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _NodeArgs(_Wire):
    pod: msgspec.Raw
    nodes: _NodeList | None = None
    node_names: list[str] | None = None


@dataclass(frozen=True, slots=True)
class NodeArgs:
    """ExtenderArgs, for filter and prioritize."""

    pod: msgspec.Raw
    names: list[str]
    nodes: list[msgspec.Raw] | None = None
    """The nodes in the order of `names`; None where names alone were sent."""


class MetaPod(_Wire):
    uid: str = msgspec.field(default="", name="UID")


class MetaVictims(_Wire):
    """The victims on one node."""

    pods: list[MetaPod] | None = None
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _Identified(msgspec.Struct):
    uid: str = ""


class _VictimPod(msgspec.Struct):
    metadata: _Identified


class _Victims(_Wire):
    pods: list[_VictimPod] | None = None
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")

    def meta(self) -> MetaVictims:
        pods = [MetaPod(pod.metadata.uid) for pod in self.pods or ()]
        return MetaVictims(pods, self.num_pdb_violations)


class _PreemptionArgs(_Wire):
    pod: msgspec.Raw
    node_name_to_victims: dict[str, _Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """ExtenderPreemptionArgs; victims that were sent as pods are also identified by UID."""

    pod: msgspec.Raw
    victims: Mapping[str, MetaVictims]


class BindingArgs(_Wire):
    """ExtenderBindingArgs."""

    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = msgspec.field(name="PodUID")


class PodReader:
    """Decodes pods and keeps the last one, because filter, prioritize and preempt send it again."""

    def __init__(self) -> None:
        self._last: tuple[bytes, Pod] | None = None

    def read(self, raw: msgspec.Raw) -> Pod:
        """Return the pod, the same object if it is sent again; raises RequestError if it is invalid."""
        data = bytes(raw)
        if self._last is not None and self._last[0] == data:
            return self._last[1]
        try:
            pod = decoding.decode(PODS, data)
            decoding.validate(pod)
        except ObjectError as error:
            raise RequestError(f"Pod: {error}") from error
        if not isinstance(pod, Pod):
            raise RequestError("Pod: expected a pod")
        self._last = data, pod
        return pod


def node_args(body: bytes) -> NodeArgs:
    found = _decode(body, _NodeArgs)
    if found.node_names is not None:
        return NodeArgs(found.pod, found.node_names)
    if found.nodes is None:
        raise RequestError("NodeNames: expected the names of nodes there, or nodes in Nodes; found neither")
    nodes = found.nodes.items or []
    return NodeArgs(found.pod, [_name(number, node) for number, node in enumerate(nodes)], nodes)


def _name(number: int, node: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(node, type=_NamedNode).metadata.name
    except _UNREADABLE as error:
        raise RequestError(f"Nodes.items[{number}]: {error}") from error


def preemption_args(body: bytes) -> PreemptionArgs:
    found = _decode(body, _PreemptionArgs)
    if found.node_name_to_meta_victims is not None:
        return PreemptionArgs(found.pod, found.node_name_to_meta_victims)
    if found.node_name_to_victims is None:
        raise RequestError(
            "NodeNameToMetaVictims: expected UIDs of victims by node there, or pods in NodeNameToVictims; found neither"
        )
    return PreemptionArgs(found.pod, {name: on.meta() for name, on in found.node_name_to_victims.items()})


def binding_args(body: bytes) -> BindingArgs:
    return _decode(body, BindingArgs)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except _UNREADABLE as error:
        raise RequestError(f"invalid request: {error}") from error


@dataclass(slots=True)
class Filtered:
    """The nodes of a request, each in one of the three results."""

    passed: list[str] = field(default_factory=list)
    """In the order of the request."""
    failed: dict[str, str] = field(default_factory=dict)
    """Node → why; removing other pods might change that."""
    unresolvable: dict[str, str] = field(default_factory=dict)


def filter_result(filtered: Filtered, args: NodeArgs) -> bytes:
    """Return ExtenderFilterResult, in the form of the request."""
    names: Sequence[str] | None = filtered.passed
    nodes: dict[str, Any] | None = None
    if args.nodes is not None:
        passed = set(filtered.passed)
        items = [node for name, node in zip(args.names, args.nodes, strict=True) if name in passed]
        names, nodes = None, {"metadata": {}, "items": items}
    return _filter_result(nodes, names, filtered.failed, filtered.unresolvable)


def filter_error(text: str) -> bytes:
    """Return ExtenderFilterResult for a filter that failed."""
    return _filter_result(None, None, {}, {}, text)


def _filter_result(
    nodes: Any, names: Any, failed: Mapping[str, str], unresolvable: Mapping[str, str], error: str = ""
) -> bytes:
    return _encode(
        {
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": {name: fit(text, TEXT_BYTES) for name, text in failed.items()},
            "FailedAndUnresolvableNodes": {name: fit(text, TEXT_BYTES) for name, text in unresolvable.items()},
            "Error": fit(error, TEXT_BYTES),
        }
    )


class _HostPriority(_Wire):
    host: str
    score: int


def host_priorities(names: Iterable[str], scores: Iterable[int]) -> bytes:
    """Return HostPriorityList with every node of the request."""
    return _encode([_HostPriority(name, score) for name, score in zip(names, scores, strict=True)])


def preemption_result(passed: Collection[str], args: PreemptionArgs) -> bytes:
    """Return ExtenderPreemptionResult: the nodes that pass, with the victims from the request."""
    return _encode({"NodeNameToMetaVictims": {name: args.victims[name] for name in passed}})


def binding_result(error: str) -> bytes:
    """Return ExtenderBindingResult; without an error the pod is bound."""
    return _encode({"Error": fit(error, TEXT_BYTES)})


def problem(text: str) -> bytes:
    """Return the body of an error response; kube-scheduler reads the status code only."""
    return _encode({"Error": fit(text, TEXT_BYTES)})
