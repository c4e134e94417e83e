"""RuntimeClasses of the embedded API server: pods that name one get its overhead and its nodes, or are refused."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import resources as r
from moorage.api.errors import Forbidden
from moorage.store.store import Store
from tests.embedded.admission.kit import case, pod, problems, strict_store, update_problems

TOLERATION = {"key": "kata", "operator": "Exists"}
KATA: dict[str, Any] = {
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
    "scheduling": {"nodeSelector": {"runtime": "kata"}, "tolerations": [TOLERATION]},
}


@pytest.fixture
def store() -> Store:
    store = strict_store()
    store.create(r.RUNTIME_CLASSES, KATA)
    store.create(r.RUNTIME_CLASSES, {"metadata": {"name": "plain"}, "handler": "runc"})
    return store


def test_a_pod_gets_overhead_selector_and_tolerations_of_its_class(store: Store):
    spec = store.create(r.PODS, pod(runtimeClassName="kata", nodeSelector={"disk": "ssd"})).raw["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "64Mi"}
    assert spec["nodeSelector"] == {"disk": "ssd", "runtime": "kata"}
    assert spec["tolerations"][-1] == TOLERATION


def test_a_class_without_overhead_adds_nothing(store: Store):
    spec = store.create(r.PODS, pod(runtimeClassName="plain")).raw["spec"]
    assert "overhead" not in spec
    assert "nodeSelector" not in spec


def test_an_equal_overhead_and_toleration_are_accepted(store: Store):
    given = pod(runtimeClassName="kata", overhead={"cpu": "0.25", "memory": "64Mi"}, tolerations=[TOLERATION])
    assert store.create(r.PODS, given).raw["spec"]["tolerations"].count(TOLERATION) == 1


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        case("missing class", {"runtimeClassName": "gone"}, 'RuntimeClass "gone" not found'),
        case(
            "other overhead",
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        case(
            "overhead without class",
            {"overhead": {"cpu": "1"}},
            "Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        case(
            "contradicting selector",
            {"runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; pod.spec.nodeSelector[runtime] = runc",
        ),
    ],
)
def test_a_pod_that_contradicts_its_class_is_refused(store: Store, spec: dict[str, Any], why: str):
    with pytest.raises(Forbidden) as caught:
        store.create(r.PODS, pod(**spec))
    assert str(caught.value.status.message) == f'pods "a" is forbidden: pod rejected: {why}'


def test_the_handler_of_a_class_is_checked_and_stays(store: Store):
    [wrong] = problems(r.RUNTIME_CLASSES, {"metadata": {"name": "x"}, "handler": "Not Good"})
    assert wrong.startswith('handler: Invalid value: "Not Good"')
    changed = {**store.get(r.RUNTIME_CLASSES, "plain").raw, "handler": "other"}
    assert update_problems(store, r.RUNTIME_CLASSES, changed) == ['handler: Invalid value: "other": field is immutable']
