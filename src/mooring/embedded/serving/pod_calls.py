"""The subresources of pods that are calls: binding (with the older bindings resource) and log."""

from __future__ import annotations

import msgspec

from mooring.api import resources
from mooring.api.meta import ObjectMeta, Record, StatusCause
from mooring.embedded import refusals
from mooring.embedded.http import Answer, text_answer
from mooring.embedded.serving import bodies
from mooring.embedded.serving.calls import Call, convert, success


class Target(Record):
    """The object that a pod is bound to."""

    kind: str = ""
    name: str = ""


class Binding(Record):
    """v1 Binding, as far as it is read."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    target: Target = Target()


_decoder = msgspec.json.Decoder(Binding)
_BOUND = success(201)


def bind(call: Call) -> Answer:
    """POST pods/<name>/binding: most requests of a scheduler, so it is read in one step if it can be."""
    binding = _read(call)
    _check(call, binding)
    if call.dry_run:
        call.store.get(resources.PODS, call.path.name, call.path.namespace)
        return _BOUND
    call.store.bind(
        binding.metadata.name or call.path.name,
        call.path.namespace,
        binding.target.name,
        uid=binding.metadata.uid,
        resource_version=binding.metadata.resource_version,
    )
    return _BOUND


def log(call: Call) -> Answer:
    pod = call.current()
    container = call.query.get("container", "")
    if container and container not in _containers(pod.raw):
        message = f"container {container[:100]} is not valid for pod {pod.name}"
        raise refusals.bad_request(message)
    return text_answer(f"Pod {pod.namespace}/{pod.name} is simulated: no process runs, so there is no log.\n")


def _read(call: Call) -> Binding:
    if bodies.media_type(call.content_type) in ("application/json", ""):
        try:
            return _decoder.decode(call.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the slow way words the error
    return convert(call.read_object(), Binding, "Binding")


def _check(call: Call, binding: Binding) -> None:
    if binding.kind not in ("", "Binding"):
        raise refusals.bad_request(f'{binding.kind[:100]} in version "v1" cannot be handled as a Binding')
    meta = binding.metadata
    if meta.namespace and meta.namespace != call.path.namespace:
        raise refusals.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if call.path.name and meta.name and meta.name != call.path.name:
        raise refusals.bad_request("name in URL does not match name in Binding object")
    if not call.path.name and not meta.name:
        raise refusals.bad_request("metadata.name of the Binding must name the pod")
    if binding.target.kind not in ("", "Node"):
        problem = f'Unsupported value: "{binding.target.kind[:100]}": supported values: "Node", "<empty>"'
        message = f'Binding "{meta.name}" is invalid: target.kind: {problem}'
        cause = StatusCause(reason="FieldValueNotSupported", message=problem, field="target.kind")
        raise refusals.failure(422, "Invalid", message, causes=(cause,))


def _containers(raw: dict[str, object]) -> set[str]:
    spec = raw.get("spec")
    found: set[str] = set()
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in (spec.get(field) if isinstance(spec, dict) else None) or []:
            found.add(str(container.get("name")))
    return found
