"""The engine of questions sees a cluster as the engine of a scheduler does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.resources import CSI_NODES, NODES, PODS
from moorage.app.configuration import configure
from moorage.app.offline import load, offline_engine, question_engine
from moorage.framework.handle import Nominator
from moorage.framework.ports import Change, Served
from moorage.testing import make_node, make_nodes, make_pod

DEFAULT = configure(discover=False)


def nominations(nominator: Nominator) -> dict[str, list[str]]:
    return {node: [pod.key for pod in nominator.nominated_on(node)] for node in nominator.nodes()}


def random_changes(seed: int) -> list[Change]:
    """Objects that come, change and go."""
    draw = random.Random(seed)
    nodes = make_nodes(4)
    changes: list[Change] = []
    pods: dict[str, Any] = {}
    changes += [Change(NODES, None, node, initial=True) for node in nodes]
    for number in range(40):
        name = f"p{draw.randrange(12)}"
        old = pods.get(name)
        options: dict[str, Any] = {"cpu": draw.choice(("100m", "1")), "priority": draw.choice((0, 5))}
        place = draw.choice(("node", "nominated", "gated", "pending", "foreign", "gone"))
        where = draw.choice(nodes).name
        if place == "node":
            options["node"] = where
        elif place == "nominated":
            options["nominated"] = where
        elif place == "gated":
            options |= {"nominated": where, "gates": ["quota"]}
        elif place == "foreign":
            options |= {"nominated": where, "scheduler": "volcano"}
        new = None if place == "gone" else make_pod(name, **options)
        if new is not None:
            new = replace(new, metadata=replace(new.metadata, resource_version=str(number + 1)))
        if old is not None and old.is_assigned and new is not None:
            new = None  # a bound pod stays on its node until it is gone
        if old is not None or new is not None:
            changes.append(Change(PODS, old, new))
        pods[name] = new
    return changes


@pytest.mark.parametrize("seed", range(20))
def test_cache_stores_and_nominations_equal_those_of_a_whole_engine(seed):
    changes = random_changes(seed)
    asked, whole = question_engine(DEFAULT), offline_engine(DEFAULT)
    for engine in (asked, whole):
        load(engine, changes)
    assert {e.pod.key: e.node_name for e in asked.cache.pods()} == {e.pod.key: e.node_name for e in whole.cache.pods()}
    assert list(asked.stores.lister(PODS).list()) == list(whole.stores.lister(PODS).list())
    assert asked.services.nodes().names == whole.services.nodes().names
    asked.cache.validate()


def test_nominations_are_those_of_the_queue():
    pods = [
        make_pod("plain", nominated="n"),
        make_pod("gated", nominated="n", gates=["quota"]),
        make_pod("foreign", nominated="n", scheduler="volcano"),
        make_pod("none"),
    ]
    changes = [Change(NODES, None, make_node("n")), *(Change(PODS, None, pod) for pod in pods)]
    asked, whole = question_engine(DEFAULT, changes), offline_engine(DEFAULT)
    load(whole, changes)
    assert (
        nominations(asked.nominator) == nominations(whole.queue.nominator) == {"n": ["default/plain", "default/gated"]}
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda old: None, {}, id="deleted"),
        pytest.param(lambda old: make_pod("p", node="n"), {}, id="bound"),
        pytest.param(lambda old: make_pod("p", nominated="m"), {"m": ["default/p"]}, id="nominated elsewhere"),
        pytest.param(lambda old: make_pod("p"), {}, id="no longer nominated"),
        pytest.param(lambda old: make_pod("p", nominated="n", labels={"a": "b"}), {"n": ["default/p"]}, id="labels"),
    ],
)
def test_nominations_follow_the_pod(change, expected):
    old = make_pod("p", nominated="n")
    engine = question_engine(DEFAULT, [Change(NODES, None, make_node("n")), Change(PODS, None, old)])
    load(engine, [Change(PODS, old, change(old))])
    assert nominations(engine.nominator) == expected


def test_kinds_that_are_not_served_are_known_to_plugins():
    engine = question_engine(DEFAULT, [Served(CSI_NODES, known=False)])
    assert not engine.stores.lister(CSI_NODES).known


def test_an_object_that_cannot_be_applied_does_not_stop_the_others():
    bad = make_node("bad", cpu="many")
    engine = question_engine(DEFAULT, [Change(NODES, None, bad), Change(NODES, None, make_node("good"))])
    assert "good" in engine.services.nodes().names


def test_more_objects_than_a_batch_are_all_loaded(monkeypatch):
    monkeypatch.setattr("moorage.app.offline.BATCH", 3)
    engine = question_engine(DEFAULT, (Change(NODES, None, node) for node in make_nodes(10)))
    assert len(engine.services.nodes()) == 10
    assert not engine.inbox


def test_all_profiles_look_at_all_nodes():
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "percentageOfNodesToScore: 5\nprofiles:\n- schedulerName: a\n- schedulerName: b\n"
        "  percentageOfNodesToScore: 10\n"
    )
    engine = question_engine(configure(text, discover=False))
    assert list(engine.profiles) == ["a", "b"]
    assert not any(profile.samples for profile in engine.profiles.values())
