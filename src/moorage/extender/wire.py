"""The JSON of the extender client: encode requests, decode and validate responses. No I/O.

The keys of requests are the field names of k8s.io/kube-scheduler/extender/v1. The keys of responses may have any case:
most extenders are written in Go, whose decoder ignores case, and an overlooked key would mean that no node passes.
Everything else is strict: a response that is invalid, or names nodes or pods that were not sent, is an ExtenderError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod
from moorage.framework.nodes import Nodes
from moorage.framework.ports import ExtenderError, ExtenderFilterResult, Victims

TEXT_LENGTH = 256
"""Characters of an extender's text that reach events, records and logs."""

_encode = msgspec.json.Encoder().encode


def node_args(pod: Pod, nodes: Nodes, *, names_only: bool) -> bytes:
    """Return ExtenderArgs for filter and prioritize, with node names or nodes."""
    if names_only:
        return _encode({"Pod": pod, "Nodes": None, "NodeNames": nodes.names})
    # Megabytes as a rule, so they are put together in one copy.
    items = nodes.node_column("extender.Node", _encoded).tolist() or [b""]
    items[0] = b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b' % (_encode(pod), items[0])
    items[-1] += b']},"NodeNames":null}'
    return b",".join(items)


def _encoded(nodes: Nodes) -> npt.NDArray[np.object_]:
    """Return the encoded nodes. They are kept as a column, so that a node is encoded once per version."""
    column = np.empty(len(nodes), dtype=np.object_)
    column[:] = [_encode(view.node) for view in nodes]
    return column


def preemption_args(pod: Pod, victims: Mapping[str, Victims], *, names_only: bool) -> bytes:
    """Return ExtenderPreemptionArgs, with UIDs of victims if the extender caches pods, otherwise with the pods."""
    encoded = {
        node: {
            "Pods": [{"UID": victim.uid} for victim in on_node.pods] if names_only else list(on_node.pods),
            "NumPDBViolations": on_node.pdb_violations,
        }
        for node, on_node in victims.items()
    }
    return _encode(
        {
            "Pod": pod,
            "NodeNameToVictims": None if names_only else encoded,
            "NodeNameToMetaVictims": encoded if names_only else None,
        }
    )


def binding_args(pod: Pod, node_name: str) -> bytes:
    """Return ExtenderBindingArgs."""
    return _encode({"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name})


def filter_result(answer: bytes, sent: Sequence[str], *, names_only: bool) -> ExtenderFilterResult:
    """Read the result. A response with neither names nor nodes means that no node passes. Of node objects only the
    names of nodes that were sent count; everything else in them is ignored."""
    found = _decode(answer, _FilterResult)
    _refuse_error(found.error)
    if names_only and found.node_names is not None:
        names = frozenset(found.node_names)
        if unknown := names.difference(sent):
            name = shown(min(unknown))
            raise ExtenderError(f'filtered node "{name}" is not found in the input node list')
    else:
        listed = found.nodes.items if found.nodes else None
        names = frozenset(sent).intersection([node.metadata.name for node in listed or ()])
    failed, unresolvable = found.failed_nodes or {}, found.failed_and_unresolvable_nodes or {}
    return ExtenderFilterResult(names, _shown(failed), _shown(unresolvable))


def _shown(refused: dict[str, str]) -> dict[str, str]:
    """Return the cached text; many nodes are rejected with the same one."""
    texts = {text: shown(text) for text in set(refused.values())}
    return {node: texts[text] for node, text in refused.items()}


def host_priorities(answer: bytes) -> dict[str, int]:
    """Return the score by node. If a node has two scores, the later one counts."""
    try:
        listed = msgspec.json.decode(answer, type=list[_HostPriority] | None) or []
    except _UNREADABLE:
        listed = [_decode(raw, _HostPriority) for raw in _read(answer, list[msgspec.Raw] | None) or ()]
    return {entry.host: entry.score for entry in listed}


def preemption_result(answer: bytes, offered: Mapping[str, Victims]) -> dict[str, Victims]:
    """Return the victims among those that were offered for the node, in their order."""
    found = _decode(answer, _PreemptionResult).node_name_to_meta_victims or {}
    return {node: _victims(node, raw, offered.get(node)) for node, raw in found.items()}


def _victims(node: str, raw: msgspec.Raw, offered: Victims | None) -> Victims:
    if offered is None:
        raise ExtenderError(f'node "{shown(node)}" was not in the request')
    found = _decode(raw, _MetaVictims)
    uids = {_decode(meta, _MetaPod).uid for meta in found.pods or ()}
    pods = [pod for pod in offered.pods if pod.uid in uids]
    if unknown := uids.difference(pod.uid for pod in pods):
        uid = shown(min(unknown))
        raise ExtenderError(f'the pod with UID "{uid}" was not offered as a victim on node "{node}"')
    return Victims(pods, found.num_pdb_violations)


def check_binding_result(answer: bytes) -> None:
    """Raise an ExtenderError if the response has an error."""
    _refuse_error(_decode(answer, _BindingResult).error)


def shown(text: str) -> str:
    """Shorten a text of an extender to one line for events and logs."""
    short = text[:TEXT_LENGTH]
    if not short.isprintable():
        short = short.encode("unicode_escape").decode("ascii")
    return short if len(text) <= TEXT_LENGTH else f"{short}..."


def _refuse_error(error: str | None) -> None:
    if error:
        raise ExtenderError(shown(error))


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""


class _Node(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _NodeList(msgspec.Struct):
    items: list[_Node] | None = None


class _Answer(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """An object of a response. Unknown keys lead to the slower path of `_decode`."""


class _FilterResult(_Answer):
    nodes: _NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str | None = None


class _HostPriority(_Answer):
    host: str
    score: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0


class _PreemptionResult(_Answer):
    node_name_to_meta_victims: dict[str, msgspec.Raw] | None = None


class _MetaVictims(_Answer):
    pods: list[msgspec.Raw] | None = None
    num_pdb_violations: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = msgspec.field(default=0, name="NumPDBViolations")


class _MetaPod(_Answer):
    uid: str = msgspec.field(name="UID")


class _BindingResult(_Answer):
    error: str | None = None


A = TypeVar("A", bound=_Answer)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _decode(raw: bytes | msgspec.Raw, kind: type[A]) -> A:
    """Decode an object; null is an object without fields. Keys may have another case, and unknown keys are dropped."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except _UNREADABLE:
        known = {name.lower(): name for name in kind.__struct_encode_fields__}
        found = _read(raw, dict[str, msgspec.Raw] | None) or {}
        kept = {known[key.lower()]: value for key, value in found.items() if key.lower() in known}
        decoded: A = _read(_encode(kept), kind)
        return decoded


def _read(raw: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except _UNREADABLE as error:
        raise ExtenderError(f"invalid response: {error}") from error
