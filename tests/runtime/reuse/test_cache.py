"""Which baseline an attempt gets, what is kept of it, and within which bounds."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.explain.evaluate import EvaluatedCase
from moorage.framework.events import QueuedPod
from moorage.runtime.attempt import Attempt, Baseline, NothingKnown
from moorage.runtime.reuse import template
from moorage.runtime.reuse.cache import NoReuse, ReuseCache, ReusePolicy
from moorage.runtime.reuse.node_set import NodeSetBaseline
from moorage.runtime.reuse.template import TemplateBaseline
from moorage.scheduler.choosing import NodeChooser
from moorage.testing import make_node, make_nodes, make_pod


class Clusters:
    """Three nodes, a chooser that reuses answers, and pods that are placed one after the other."""

    def __init__(self, reuse: NoReuse | None = None) -> None:
        self.world = EvaluatedCase({"pod": msgspec.to_builtins(make_pod("unused"))})
        for node in make_nodes(3, cpu="4"):
            self.world.put(NODES, node)
        self.world.engine.drain()
        stores = self.world.engine.stores
        self.reuse = ReuseCache(lambda resource: stores[resource].version) if reuse is None else reuse
        self.chooser = NodeChooser(self.reuse)

    def place(self, pod: Pod) -> Attempt:
        profile = next(iter(self.world.engine.profiles.values()))
        info = QueuedPod(pod, 0.0, signature=self.world.signature(pod))
        attempt = Attempt(info, profile, self.world.nodes)
        asyncio.run(self.chooser.choose(attempt))
        if attempt.node:
            spec = msgspec.structs.replace(pod.spec, node_name=attempt.node)
            self.change(PODS, msgspec.structs.replace(pod, spec=spec))
        return attempt

    def change(self, resource: Any, obj: Any, old: Any = None) -> None:
        self.world.put(resource, obj, old)
        self.world.engine.drain()


def web(number: int, **options: Any) -> Pod:
    return make_pod(f"web-{number}", cpu="10m", labels={"app": "web"}, **options)


def test_a_signature_is_kept_when_it_comes_for_the_second_time_and_that_attempt_goes_on_from_it():
    clusters = Clusters()
    first, *others = (clusters.place(web(number)).baseline for number in range(4))
    assert isinstance(first, NodeSetBaseline)
    assert isinstance(others[0], TemplateBaseline)
    assert all(baseline is others[0] for baseline in others)


def test_without_reuse_every_attempt_starts_from_nothing():
    clusters = Clusters(NoReuse())
    assert {type(clusters.place(web(number)).baseline) for number in range(4)} == {NothingKnown}


CHANGES: list[Any] = [
    pytest.param(lambda c: None, True, id="nothing"),
    pytest.param(lambda c: c.place(make_pod("x", cpu="1")), True, id="a pod elsewhere"),
    pytest.param(lambda c: c.change(NODES, make_node("node-0", cpu="8")), True, id="a node's capacity"),
    pytest.param(lambda c: c.change(NODES, make_node("new")), False, id="a new node"),
]


@pytest.mark.parametrize(("change", "outlived"), CHANGES)
def test_a_template_outlives_changed_rows_and_not_a_changed_set_of_nodes(change, outlived):
    clusters = Clusters()
    kept = [clusters.place(web(number)).baseline for number in range(3)][-1]
    change(clusters)
    assert (clusters.place(web(3)).baseline is kept) == outlived


def test_more_changed_rows_than_are_worth_judging_one_by_one_drop_a_template(monkeypatch):
    monkeypatch.setattr("moorage.runtime.reuse.refreshing.MAX_CHANGED_ROWS", 1)
    clusters = Clusters()
    kept = [clusters.place(web(number)).baseline for number in range(3)][-1]
    for node in ("node-0", "node-1"):
        clusters.change(PODS, make_pod(f"on-{node}", node=node))
    assert clusters.place(web(3)).baseline is not kept


SPECIAL: list[Any] = [pytest.param({"nominated": "node-1"}, id="a nominated node")]


@pytest.mark.parametrize("options", SPECIAL)
def test_attempts_that_try_one_node_first_start_from_nothing(options):
    clusters = Clusters()
    for number in range(3):
        clusters.place(web(number))
    pod = web(9)
    status = msgspec.structs.replace(pod.status, nominated_node_name=options["nominated"])
    attempt = clusters.place(msgspec.structs.replace(pod, status=status))
    assert isinstance(attempt.baseline, NothingKnown)
    assert attempt.node == "node-1"


def test_a_pod_without_a_signature_starts_from_nothing():
    clusters = Clusters()
    profile = next(iter(clusters.world.engine.profiles.values()))
    attempt = Attempt(QueuedPod(make_pod("p"), 0.0), profile, clusters.world.nodes)
    assert isinstance(clusters.reuse.find(attempt), NothingKnown)


def test_the_remaining_plugins_of_the_baselines():
    """Fewer plugins remain the more is known; the last baseline of a plain pod leaves none."""
    clusters = Clusters()
    asked = []
    for baseline in (Clusters(NoReuse()).place(web(0)).baseline, *_baselines(clusters)):
        names = {p.name for p in baseline.remaining.filters} | {s.name for s in baseline.remaining.scores}
        asked.append(names)
    nothing, node_set, template = asked
    assert {"NodeName", "NodeResourcesFit", "InterPodAffinity"} <= nothing
    assert "NodeName" not in node_set
    assert "NodeResourcesFit" in node_set
    assert "NodeResourcesFit" not in template


def _baselines(clusters: Clusters) -> tuple[Baseline, Baseline]:
    found = [clusters.place(web(number)).baseline for number in range(3)]
    return found[0], found[2]


def test_a_baseline_that_no_pod_starts_from_is_built_ever_more_rarely():
    """The second pod of a signature, then one of five, one of seventeen, one of sixty-five."""
    policy = ReusePolicy()
    due = [number for number in range(200) if policy.is_due(0, number, 128)]
    assert due == [1, 5, 21, 85, 149]


def test_no_baseline_is_built_for_pods_between_which_too_much_changes():
    policy = ReusePolicy()
    assert not any(policy.is_due(0, number * 1000, 128) for number in range(1, 50))
    assert policy.is_due(0, 49_001, 128)


@pytest.mark.parametrize(
    ("waiting", "due"),
    [
        ((3, 2, 1, 0), [True, False, False, False]),
        ((2, 1, 0), [False, False, False]),
        ((0, 0), [False, True]),
        ((0, 3, 2), [False, True, False]),
        ((1,) * 9, [False] * 8 + [True]),
    ],
)
def test_a_baseline_is_built_where_enough_pods_wait_or_none_is_known_to(waiting, due):
    policy = ReusePolicy()
    found: list[bool] = []
    for behind in waiting:
        found.append(not any(found) and policy.is_due(behind, 0, 128))
    assert found == due


def test_the_first_of_pods_that_wait_together_serves_the_others():
    clusters = Clusters()
    pods = [web(number) for number in range(4)]
    waiting = [clusters.world.signature(pod) for pod in pods[1:]]  # the queue holds the signatures of its pods
    found = [clusters.place(pod).baseline for pod in pods]
    assert isinstance(found[0], TemplateBaseline)
    assert all(baseline is found[0] for baseline in found)
    assert len(waiting) == 3


def test_templates_that_drive_each_other_out_are_not_built_each_time(monkeypatch):
    built: list[str] = []
    build = template.build

    def counted(profile: Any, pod: Pod, *rest: Any) -> Any:
        built.append(pod.labels["app"])
        return build(profile, pod, *rest)

    monkeypatch.setattr(template, "build", counted)
    clusters = Clusters()
    clusters.reuse = ReuseCache(lambda resource: 0, template_bytes=1)
    clusters.chooser = NodeChooser(clusters.reuse)
    for number in range(60):
        clusters.place(make_pod(f"p{number}", cpu="1m", labels={"app": f"app-{number % 2}"}))
    assert len(built) < 30, "as many as half of the pods had a baseline built, which the other template dropped"


def test_a_baseline_that_was_used_is_built_again_with_the_next_pod():
    clusters = Clusters()
    kept = [clusters.place(web(number)).baseline for number in range(3)][-1]
    clusters.change(NODES, make_node("new"))
    found = [clusters.place(web(number)).baseline for number in range(3, 6)]
    assert isinstance(found[0], TemplateBaseline)
    assert found[0] is not kept
    assert all(baseline is found[0] for baseline in found)
