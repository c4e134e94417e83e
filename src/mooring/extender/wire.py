"""The JSON that extenders speak: requests encoded, answers decoded and checked. No I/O.

The keys of requests are the field names of k8s.io/kube-scheduler/extender/v1. Answers may write theirs in any
case: most extenders are in Go, whose decoder does not care, and a key that is overlooked would mean that no
node passes. Everything else is strict. An answer can only narrow what was sent, and an ExtenderError says in
which field it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.framework.extending import ExtenderError, ExtenderFilterResult, Victims
from mooring.framework.nodes import Nodes

TEXT_LENGTH = 256
"""Characters of an extender's text that reach events, records and logs."""

_encode = msgspec.json.Encoder().encode
_Object = dict[str, msgspec.Raw]


def node_args(pod: Pod, nodes: Nodes, *, names_only: bool) -> bytes:
    """ExtenderArgs, for filter and prioritize: the names of the nodes, or the nodes."""
    if names_only:
        return _encode({"Pod": pod, "Nodes": None, "NodeNames": nodes.names})
    items = nodes.node_column("extender.Node", _encoded).tolist()
    return _encode({"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})


def _encoded(nodes: Nodes) -> npt.NDArray[np.object_]:
    """Kept as a column, so that a node is encoded once per version."""
    column = np.empty(len(nodes), dtype=np.object_)
    column[:] = [msgspec.Raw(_encode(view.node)) for view in nodes]
    return column


def preemption_args(pod: Pod, victims: Mapping[str, Victims], *, names_only: bool) -> bytes:
    """ExtenderPreemptionArgs: victims by UID for an extender that knows the pods, else the pods."""
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
    """ExtenderBindingArgs."""
    return _encode({"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name})


def filter_result(answer: bytes, sent: Sequence[str], *, names_only: bool) -> ExtenderFilterResult:
    """ExtenderFilterResult. Neither names nor nodes means that none passes. Of node objects only the names
    count, and only those that were sent; what else they say is not believed."""
    fields = _fields(answer, "answer")
    _refuse_error(fields)
    names = _field(fields, "NodeNames", list[str]) if names_only else None
    if names is None:
        listed = _field(fields, "Nodes", _NodeList)
        names = {node.metadata.name for node in (listed.items if listed else None) or ()}.intersection(sent)
    return ExtenderFilterResult(
        frozenset(names), _texts(fields, "FailedNodes"), _texts(fields, "FailedAndUnresolvableNodes")
    )


def host_priorities(answer: bytes) -> dict[str, int]:
    """HostPriorityList as node → score. Of two scores for one node the later one counts."""
    scores: dict[str, int] = {}
    for index, entry in enumerate(_decode(answer, list[dict[str, str | int]] | None, "answer") or ()):
        fields = {key.lower(): value for key, value in entry.items()}
        host, score = fields.get("host"), fields.get("score", 0)
        if not isinstance(host, str) or not isinstance(score, int):
            raise ExtenderError(f"[{index}] of the answer: expected Host as a string and Score as an integer")
        scores[host] = score
    return scores


def preemption_result(answer: bytes, offered: Mapping[str, Victims]) -> dict[str, Victims]:
    """ExtenderPreemptionResult. Victims are those that were offered for the node, in their order."""
    given = _field(_fields(answer, "answer"), "NodeNameToMetaVictims", dict[str, msgspec.Raw])
    return {node: _meta_victims(node, raw, offered.get(node)) for node, raw in (given or {}).items()}


def _meta_victims(node: str, raw: msgspec.Raw, offered: Victims | None) -> Victims:
    where = f"NodeNameToMetaVictims[{shown(node)}]"
    fields = _fields(raw, where)
    metas = _field(fields, "Pods", list[msgspec.Raw]) or ()
    uids = {_field(_fields(meta, f"{where}.Pods"), "UID", str) for meta in metas}
    pods = [pod for pod in (offered.pods if offered else ()) if pod.uid in uids]
    if unknown := sorted(f"{shown(uid or '')}" for uid in uids.difference(pod.uid for pod in pods)):
        raise ExtenderError(f'{where}: the pod with UID "{unknown[0]}" was not offered as a victim there')
    violations = _field(fields, "NumPDBViolations", int) or 0
    if violations < 0:
        raise ExtenderError(f"{where}.NumPDBViolations: {violations} is negative")
    return Victims(pods, violations)


def check_binding_result(answer: bytes) -> None:
    """ExtenderBindingResult: an ExtenderError when it has an error."""
    _refuse_error(_fields(answer, "answer"))


def shown(text: str) -> str:
    """A text of an extender, fit for events and logs: short, on one line."""
    short = text[:TEXT_LENGTH]
    if not short.isprintable():
        short = short.encode("unicode_escape").decode("ascii")
    return short if len(text) <= TEXT_LENGTH else f"{short}..."


class _Metadata(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _NodeList(msgspec.Struct):
    items: list[_Node] | None = None


def _fields(raw: bytes | msgspec.Raw, where: str) -> _Object:
    """The fields of an object by their name in lower case; null has none."""
    found: _Object = _decode(raw, _Object | None, where) or {}
    return {key.lower(): value for key, value in found.items()}


def _field(fields: _Object, name: str, kind: Any) -> Any:
    """None where it is null or absent."""
    raw = fields.get(name.lower())
    return None if raw is None else _decode(raw, kind | None, name)


def _texts(fields: _Object, name: str) -> dict[str, str]:
    return {node: shown(text) for node, text in (_field(fields, name, dict[str, str]) or {}).items()}


def _refuse_error(fields: _Object) -> None:
    if error := _field(fields, "Error", str):
        raise ExtenderError(shown(error))


def _decode(raw: bytes | msgspec.Raw, kind: Any, where: str) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ExtenderError(f"{where} is not as agreed: {error}") from error
