"""PodTopologySpread and InterPodAffinity against plain models: fresh, after random events, and in dry runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api import resources as kinds
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.selectors import Selector, compile_label_selector, selector_from_labels
from moorage.framework.cycle_state import CycleState
from moorage.framework.statuses import NodeStatuses
from moorage.plugins.pod_topology_spread.constraints import SYSTEM_DEFAULTS
from moorage.runtime.dry_run import PodTrial, Session
from moorage.runtime.filtering import run_filters
from moorage.runtime.pre_filtering import run_pre_filter
from tests.plugins import plain_affinity, plain_spread
from tests.plugins.crowded_worlds import Crowd, Json, cases, pods

SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
PARTS = (
    ("metadata", "labels"),
    ("metadata", "namespace"),
    ("metadata", "ownerReferences"),
    ("spec", "affinity"),
    ("spec", "topologySpreadConstraints"),
    ("spec", "nodeSelector"),
    ("spec", "tolerations"),
)


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_fresh_verdicts_equal_the_models(case: Json) -> None:
    for plugin in (SPREAD, AFFINITY):
        check(Crowd(case, plugin), plugin)


@given(data=st.data(), case=cases())
@settings(max_examples=60, deadline=None)
def test_verdicts_after_events_equal_the_models(data: st.DataObject, case: Json) -> None:
    for plugin in (SPREAD, AFFINITY):
        crowd = Crowd(case, plugin)
        check(crowd, plugin)  # counters exist from here on, and must follow
        shuffle(data, crowd)
        check(crowd, plugin)


@given(data=st.data(), case=cases())
@settings(max_examples=80, deadline=None)
def test_dry_runs_equal_the_models(data: st.DataObject, case: Json) -> None:
    for plugin in (SPREAD, AFFINITY):
        crowd = Crowd(case, plugin)
        state = CycleState()
        run_pre_filter(crowd.profile, state, crowd.pod, crowd.world.nodes)
        if plugin in state.skip_filter:
            continue
        before = fresh_verdicts(crowd, state)
        model: Any = filter_model(crowd, plugin)
        trial = Session(crowd.profile).trial(crowd.pod, state)
        walk(data, crowd, trial, model)
        assert fresh_verdicts(crowd, state) == before  # the cycle's own state saw nothing of it


def walk(data: st.DataObject, crowd: Crowd, trial: PodTrial, model: Any) -> None:
    """Preemption-like: pods leave a node, some come back, others are nominated; sometimes in a fork."""
    nodes = crowd.nodes()
    for number in range(data.draw(st.integers(1, 6))):
        node = data.draw(st.sampled_from(nodes))
        there = list(trial.node(node.name).pods)
        leaves = bool(there) and data.draw(st.booleans())
        if leaves:
            gone = data.draw(st.sampled_from(there))
            trial.remove_pod(node.name, gone)
            model.update(gone, node, -1)
        else:
            raw = data.draw(pods(f"extra{number}", node.name))
            added = msgspec.convert(raw, Pod)
            trial.add_pod(node.name, added)
            model.update(added, node, 1)
        assert trial.status.is_success
        for looked_at in nodes:
            status = trial.filter(looked_at.name)
            assert ", ".join(status.reasons) == model.verdict(looked_at)
        statuses = dict(trial.filter_all())
        for looked_at in nodes:
            refused = statuses.get(looked_at.name)
            assert ("" if refused is None else refused.message) == model.verdict(looked_at)
        if data.draw(st.booleans()):
            trial, model = trial.fork(), model.clone()


@given(case=cases())
@settings(max_examples=50, deadline=None)
def test_pods_that_do_not_concern_a_plugin_change_nothing(case: Json) -> None:
    for plugin in (SPREAD, AFFINITY):
        crowd = Crowd(case, plugin)
        state = CycleState()
        run_pre_filter(crowd.profile, state, crowd.pod, crowd.world.nodes)
        if plugin in state.skip_filter:
            continue
        verdicts = fresh_verdicts(crowd, state)
        for view in crowd.world.nodes:
            for other in view.pods:
                if not crowd.plugin.concerns(state, crowd.pod, other):
                    trial = Session(crowd.profile).trial(crowd.pod, state)
                    trial.remove_pod(view.name, other)
                    assert {n.name: trial.filter(n.name).message for n in crowd.nodes()} == verdicts


@given(case=cases(), other=pods("other"), taken=st.integers(0, 6))
@settings(max_examples=80, deadline=None)
def test_pods_of_equal_signature_get_equal_answers(case: Json, other: Json, taken: int) -> None:
    """In one world: the case's pod, and the same with one part taken from another pod."""
    raw = {"metadata": {**case["pod"]["metadata"]}, "spec": {**case["pod"]["spec"]}}
    part, name = PARTS[taken]
    raw[part][name] = other[part].get(name, [])
    second = msgspec.convert(raw, Pod)
    for plugin in (SPREAD, AFFINITY):
        crowd = Crowd(case, plugin)
        if crowd.plugin.sign(crowd.pod) != crowd.plugin.sign(second):
            continue
        first = answers(crowd)
        crowd.pod = crowd.world.pod = second
        assert answers(crowd) == first


def shuffle(data: st.DataObject, crowd: Crowd) -> None:
    """Nodes go and come back with other labels, pods are deleted, relabelled and added, namespaces change."""
    world, engine = crowd.world, crowd.world.engine
    for number in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["node", "back", "pod", "gone", "relabel", "space"])):
            case "node":
                present = crowd.nodes()
                if present:
                    world.put(kinds.NODES, None, data.draw(st.sampled_from(present)))
            case "back":
                raw = data.draw(st.sampled_from(crowd.case["nodes"]))
                labels = data.draw(st.sampled_from(crowd.case["nodes"]))["metadata"]["labels"]
                raw = {**raw, "metadata": {**raw["metadata"], "labels": labels}}
                lister = engine.services.lister(kinds.NODES)
                world.put(kinds.NODES, msgspec.convert(raw, Node), lister.get(raw["metadata"]["name"]))
            case "pod":
                raw = data.draw(pods(f"new{number}", f"n{data.draw(st.integers(0, 4))}"))
                world.put(kinds.PODS, msgspec.convert(raw, Pod))
            case "gone":
                there = list(engine.services.lister(kinds.PODS).list())
                if there:
                    world.put(kinds.PODS, None, data.draw(st.sampled_from(there)))
            case "relabel":
                there = list(engine.services.lister(kinds.PODS).list())
                if there:
                    old = data.draw(st.sampled_from(there))
                    meta = msgspec.structs.replace(old.metadata, labels={"app": "1"})
                    world.put(kinds.PODS, msgspec.structs.replace(old, metadata=meta), old)
            case "space":
                lister = engine.services.lister(kinds.NAMESPACES)
                there = list(lister.list())
                if there:
                    old = data.draw(st.sampled_from(there))
                    meta = msgspec.structs.replace(old.metadata, labels={"tier": "2"})
                    world.put(kinds.NAMESPACES, msgspec.structs.replace(old, metadata=meta), old)
        engine.drain()


def answers(crowd: Crowd) -> dict[str, Any]:
    return crowd.world.one_plugin(crowd.plugin.name)


def check(crowd: Crowd, plugin: str) -> None:
    answer = answers(crowd)
    model: Any = filter_model(crowd, plugin)
    refused = {node.name: model.verdict(node) for node in crowd.nodes() if model.verdict(node)}
    assert {name: ", ".join(s["reasons"]) for name, s in answer.get("filter", {}).items()} == refused
    assert answer.get("score") == weighted(crowd, plugin)


def filter_model(crowd: Crowd, plugin: str) -> Any:
    if plugin == AFFINITY:
        return plain_affinity.PlainFilter(crowd.pod, crowd.nodes(), crowd.pods(), crowd.namespace_labels())
    found = spread_constraints(crowd, "DoNotSchedule")
    return plain_spread.PlainFilter(found, crowd.pod, crowd.nodes(), crowd.pods())


def weighted(crowd: Crowd, plugin: str) -> dict[str, int] | None:
    nodes, running = crowd.nodes(), crowd.pods()
    scores: dict[str, int] | None
    if not nodes:
        return None
    if plugin == AFFINITY:
        args = crowd.plugin.args
        scores = plain_affinity.plain_scores(
            crowd.pod,
            nodes,
            running,
            crowd.namespace_labels(),
            args.hard_pod_affinity_weight,
            args.ignore_preferred_terms_of_existing_pods,
        )
    else:
        found = spread_constraints(crowd, "ScheduleAnyway")
        system = crowd.plugin.args.defaulting_type == "System"
        require_all = bool(crowd.pod.spec.topology_spread_constraints) or not system
        scores = plain_spread.plain_scores(found, crowd.pod, nodes, running, require_all) if found else None
    return None if scores is None else {name: 2 * score for name, score in scores.items()}


def spread_constraints(crowd: Crowd, action: str) -> list[plain_spread.Plain]:
    args = crowd.plugin.args
    default: Sequence[Any] = SYSTEM_DEFAULTS if args.defaulting_type == "System" else args.default_constraints
    return plain_spread.plain_constraints(crowd.pod, action, default, selected_by(crowd))


def selected_by(crowd: Crowd) -> Selector:
    """What selects the pod, by a scan of everything."""
    pod, services = crowd.pod, crowd.world.engine.services
    labels: dict[str, str] = {}
    for service in services.lister(kinds.SERVICES).list():
        wanted = service.spec.selector
        if service.namespace == pod.namespace and selector_from_labels(wanted).matches(pod.labels):
            labels |= wanted
    selector = selector_from_labels(labels)
    for owner in pod.metadata.owner_references:
        for found in services.lister(kinds.REPLICA_SETS).list():
            if found.namespace == pod.namespace and found.name == owner.name:
                selector = selector.plus(*compile_label_selector(found.spec.selector).requirements)
    return selector


def fresh_verdicts(crowd: Crowd, state: CycleState) -> dict[str, str]:
    statuses = NodeStatuses(crowd.world.nodes)
    _, error = run_filters(crowd.profile, state, crowd.pod, crowd.world.nodes, statuses)
    assert error.is_success
    return {node.name: statuses.get(node.name).message for node in crowd.nodes()}
