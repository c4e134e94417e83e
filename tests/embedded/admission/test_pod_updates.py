"""What an update may change of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Invalid
from moorage.api.resources import PODS
from moorage.store.store import Store
from tests.embedded.admission.kit import case, causes, container, pod, strict_store

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CHANGEABLE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def patched(store: Store, spec: dict[str, Any], subresource: str = "") -> list[str]:
    try:
        store.patch(PODS, "a", {"spec": spec}, namespace="default", subresource=subresource)
    except Invalid as error:
        return causes(error)
    return []


def node_terms(*keys: str) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}


@pytest.mark.parametrize(
    ("before", "change"),
    [
        case("nothing", {}, {}),
        case("an image", {}, {"containers": [{"name": "main", "image": "nginx:2"}]}),
        case("a first deadline", {}, {"activeDeadlineSeconds": 10}),
        case("a shorter deadline", {"activeDeadlineSeconds": 20}, {"activeDeadlineSeconds": 10}),
        case("fewer gates", {"schedulingGates": [{"name": "g"}]}, {"schedulingGates": None}),
        case("a gated pod's node selector", {"schedulingGates": [{"name": "g"}]}, {"nodeSelector": {"a": "b"}}),
        case("a gated pod's first node affinity", {"schedulingGates": [{"name": "g"}]}, {"affinity": node_terms("a")}),
        case(
            "a gated pod's narrower term",
            {"schedulingGates": [{"name": "g"}], "affinity": node_terms("a")},
            {"affinity": node_terms("a", "b")},
        ),
    ],
)
def test_allowed(before, change):
    store = strict_store()
    store.create(PODS, pod(**before))
    assert patched(store, change) == []


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        case("its node", {}, {"nodeName": "n1"}, [f"{CHANGEABLE}\nchanged: spec.nodeName"]),
        case("its node selector", {}, {"nodeSelector": {"a": "b"}}, [f"{CHANGEABLE}\nchanged: spec.nodeSelector"]),
        case("its priority", {}, {"priority": 7}, [f"{CHANGEABLE}\nchanged: spec.priority"]),
        case(
            "a command",
            {},
            {"containers": [{"name": "main", "command": ["x"]}]},
            [f"{CHANGEABLE}\nchanged: spec.containers"],
        ),
        case(
            "more containers",
            {},
            {"containers": [container("second")]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
        ),
        case(
            "a longer deadline",
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 10},
            ["spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value"],
        ),
        case(
            "no deadline any more",
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": None},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
        ),
        case(
            "fewer tolerations",
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {"tolerations": []},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        ),
        case(
            "a new gate",
            {},
            {"schedulingGates": [{"name": "late"}]},
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'late'"],
        ),
        case(
            "a gated pod's wider node selector",
            {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}},
            {"nodeSelector": {"a": "c"}},
            [
                'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector '
                "are allowed "
                "(no mutations or deletions)"
            ],
        ),
    ],
)
def test_refused(before, change, expected):
    store = strict_store()
    store.create(PODS, pod(**before))
    assert patched(store, change) == expected


def test_tolerations_may_be_added_and_their_seconds_changed():
    store = strict_store()
    current = store.create(PODS, pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}])).raw
    more = [{**t, "tolerationSeconds": 5} for t in current["spec"]["tolerations"]] + [{"operator": "Exists"}]
    assert patched(store, {"tolerations": more}) == []


def test_a_bound_pod_can_be_labelled_and_keeps_its_node():
    store = strict_store()
    store.create(PODS, pod())
    store.bind("a", "default", "n1")
    stored = store.patch(PODS, "a", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    assert stored.raw["spec"]["nodeName"] == "n1"
    assert stored.raw["metadata"]["generation"] == 1


def test_amounts_change_through_resize_only():
    store = strict_store()
    store.create(PODS, pod(containers=[container(resources={"requests": {"cpu": "1"}})]))
    change = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    assert patched(store, change) == [f"{CHANGEABLE}\nchanged: spec.containers"]
    assert patched(store, change, "resize") == []
    assert patched(store, {"schedulerName": "x"}, "resize") == [
        "spec: Forbidden: pod updates may not change fields other than cpu and memory resources\n"
        "changed: spec.schedulerName"
    ]


def test_finalizers_cannot_be_added_to_what_is_going():
    store = strict_store()
    store.create(PODS, pod(meta={"finalizers": ["x/y"]}))
    store.delete(PODS, "a", namespace="default")
    with pytest.raises(Invalid, match=r'found new finalizers \[\]string{"z/z"}'):
        store.patch(PODS, "a", {"metadata": {"finalizers": ["z/z"]}}, namespace="default")
