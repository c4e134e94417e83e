"""Read the GPU request of a pod, from annotations or an extended resource, and the cards that it was assigned."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.api.requests import pod_requests

GPU_MILLI = "alibabacloud.com/gpu-milli"
"""Of a pod: thousandths of each card (annotation), or of all its cards together (resource)."""
GPU_COUNT = "alibabacloud.com/gpu-count"
"""Of a node: cards (resource). Of a pod: cards that it asks for (annotation)."""
GPU_MODEL = "alibabacloud.com/gpu-card-model"
"""Of a node: the model of its cards (label). Of a pod: models that it accepts, joined by `|` (annotation)."""
GPU_INDEX = "alibabacloud.com/gpu-index"
"""Of a pod: numbers of the cards that it was given, from 0, joined by `-` (annotation)."""

WHOLE = 1000
"""Milli of one card."""
MAX_CARDS = 8
"""The maximum number of cards of a node that are used."""


class GpuRequest(NamedTuple):
    """The number of cards, milli of each, and accepted models (empty: any). A part is of one card."""

    cards: int = 0
    milli: int = 0
    models: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.cards * self.milli

    @property
    def is_part(self) -> bool:
        return 0 < self.milli < WHOLE


NOTHING = GpuRequest()


def gpu_request(pod: Pod) -> GpuRequest:
    """Return the GPU request of a pod; nothing if it is invalid."""
    return read_request(pod)[0]


def read_request(pod: Pod) -> tuple[GpuRequest, str]:
    """Return the GPU request of a pod and what is wrong with it; an invalid request is empty."""
    annotations = pod.annotations
    if GPU_MILLI not in annotations and GPU_COUNT not in annotations:
        return _of_resource(pod)
    found = []
    for name, missing, most in ((GPU_COUNT, "1", MAX_CARDS), (GPU_MILLI, str(WHOLE), WHOLE)):
        text = annotations.get(name, missing)
        if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) <= most):
            return NOTHING, f"annotation {name} must be a number from 0 to {most}, not {text!r}"
        found.append(int(text))
    count, milli = found
    if not count * milli:
        return NOTHING, ""
    if count > 1 and milli < WHOLE:
        return NOTHING, (
            f"annotation {GPU_MILLI} must be {WHOLE} where {GPU_COUNT} is above 1, not {milli}: parts are of one card"
        )
    return GpuRequest(count, milli, models_of(annotations.get(GPU_MODEL, ""))), ""


def _of_resource(pod: Pod) -> tuple[GpuRequest, str]:
    if not any(GPU_MILLI in container.resources.requests for container in pod.spec.containers):
        return NOTHING, ""
    total = pod_requests(pod).get(GPU_MILLI, 0)
    if total > WHOLE and (total % WHOLE or total > WHOLE * MAX_CARDS):
        most = WHOLE * MAX_CARDS
        return (NOTHING, f"request of {GPU_MILLI} must be at most {WHOLE}, or thousands up to {most}, not {total}")
    models = models_of(pod.annotations.get(GPU_MODEL, ""))
    return GpuRequest(max(total // WHOLE, 1), min(total, WHOLE), models) if total else NOTHING, ""


def asking(pod: Pod, cards: int, milli: int) -> Pod:
    """Return the pod with another GPU request, written where it has one: in annotations, or as a resource."""
    if GPU_MILLI in pod.annotations or GPU_COUNT in pod.annotations:
        return _annotated(pod, {GPU_COUNT: str(cards), GPU_MILLI: str(milli)})
    holders = [c.name for c in pod.spec.containers if GPU_MILLI in c.resources.requests]
    return pod if len(holders) != 1 else _with_resource(pod, holders[0], str(cards * milli))


def accepting(pod: Pod, model: str) -> Pod:
    """Return the pod that accepts one more model."""
    return _annotated(pod, {GPU_MODEL: "|".join(sorted({*models_of(pod.annotations.get(GPU_MODEL, "")), model}))})


def _annotated(pod: Pod, values: dict[str, str]) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, annotations={**pod.annotations, **values}))


def _with_resource(pod: Pod, container: str, amount: str) -> Pod:
    """Return the pod with another amount for one container; requests and limits of such a resource are equal."""
    containers = []
    for each in pod.spec.containers:
        if each.name == container:
            own = each.resources
            limits = {**own.limits, GPU_MILLI: amount} if GPU_MILLI in own.limits else own.limits
            own = replace(own, requests={**own.requests, GPU_MILLI: amount}, limits=limits)
            each = replace(each, resources=own)
        containers.append(each)
    return replace(pod, spec=replace(pod.spec, containers=tuple(containers)))


def models_of(text: str) -> tuple[str, ...]:
    """Return the models in an annotation, sorted."""
    return tuple(sorted(filter(None, set(text.split("|")))))


def cards_of(pod: Pod) -> tuple[int, ...]:
    """Return the cards in the pod's annotation; empty if it is missing or invalid."""
    parts = pod.annotations.get(GPU_INDEX, "").split("-")
    if all(len(part) == 1 and part in "01234567" for part in parts):
        return tuple(map(int, parts))
    return ()


def card_text(cards: tuple[int, ...]) -> str:
    """Return the annotation text that `cards_of` reads."""
    return "-".join(map(str, cards))
