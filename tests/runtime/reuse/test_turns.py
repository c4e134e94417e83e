"""Templates that take turns: brought up to date together, they answer as attempts that start from nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.resources import NODES, PODS
from moorage.framework.nodes import NodeView
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.runtime.reuse import turns
from moorage.runtime.reuse.cache import ReuseCache
from moorage.scheduler.choosing import NodeChooser
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_container
from tests.runtime.reuse.test_equals_fresh import Clusters


class InTurn(Clusters):
    """Templates one after the other, each with requests of its own, on nodes that seldom change."""

    def __init__(self, seed: int, nodes: int = 40, cpus: tuple[str, ...] = ("64", "96")) -> None:
        self._cpus = cpus
        self.only: int | None = None
        """The one template that has pods; None: all take turns."""
        self.more: dict[str, Any] = {}
        """What all pods ask for beside."""
        super().__init__(seed, nodes, calm=True)

    def node(self, name: str):
        taints = ["a=b:NoSchedule"] if self.draw.random() < 0.2 else []
        cpu = self.draw.choice(self._cpus)
        images = {"web:1": 400 << 20} if self.draw.random() < 0.3 else None
        return make_node(name, cpu=cpu, memory="256Gi", images=images, taints=taints)

    def template(self):
        turn = self.number % 40 if self.only is None else self.only
        pod: dict[str, Any] = self.more | {
            "cpu": f"{50 + 37 * turn}m",
            "memory": f"{64 + 11 * turn}Mi",
            "labels": {"app": f"t{turn}"},
        }
        if not turn % 7:
            pod["tolerations"] = ["a=b:NoSchedule"]
        if not turn % 3:
            main = make_container("main", pod.pop("cpu"), pod.pop("memory"), image="web:1")
            pod["containers"] = [main]
        return pod

    def place_all(self, pods: int) -> None:
        for _ in range(pods):
            self.place()
            self.world.engine.drain()

    def place(self) -> None:
        super().place()
        self.seen["in turn"] = max(self.seen["in turn"], self.in_turn)

    @property
    def in_turn(self) -> int:
        return sum(baseline.takes_turns for baseline in self.reuse.templates.values())


@pytest.mark.parametrize("seed", range(4))
def test_templates_that_take_turns_answer_as_fresh_attempts(seed):
    clusters = InTurn(seed)
    for _ in range(500):
        clusters.step()
    assert clusters.seen["in turn"] > 30
    assert clusters.seen["TemplateBaseline"] > 200
    assert clusters.seen["kept scores"] > 100, "hardly any attempt was decided by what was kept"


@pytest.mark.parametrize("seed", range(4))
def test_turns_end_where_nodes_fill_up_and_answers_stay_right(seed, monkeypatch):
    monkeypatch.setattr(turns, "_SHORT", 64)
    clusters = InTurn(seed, nodes=24, cpus=("10",))
    for _ in range(500):
        clusters.step()
    assert clusters.seen["in turn"] > 10
    assert not clusters.in_turn, "no node may be refused where templates take turns"


def test_a_burst_of_one_template_judges_no_row_for_the_others(monkeypatch):
    clusters = InTurn(0)
    clusters.place_all(200)
    judged: list[str] = []
    original = turns.Turns._judge

    def judge(self: turns.Turns, node: NodeView) -> bool:
        judged.append(node.name)
        return original(self, node)

    monkeypatch.setattr(turns.Turns, "_judge", judge)
    clusters.only = 3
    clusters.place_all(1)
    before = len(judged)
    clusters.place_all(30)
    assert len(judged) == before
    clusters.only = None
    clusters.place_all(1)
    assert before < len(judged) <= before + 31


def test_a_node_that_a_burst_filled_and_that_is_feasible_again_is_noticed():
    """Before the other templates look at it: only the one of the burst was ever refused."""
    clusters = InTurn(0, nodes=20, cpus=("64",))
    clusters.place_all(200)
    assert clusters.in_turn == 40
    nodes = [node for node in clusters.nodes.values() if not node.taints]
    clusters.only = 39
    clusters.place_all(1)
    fillers = [make_pod(f"filler-{node.name}", cpu="60", node=node.name) for node in nodes[:3]]
    for filler in fillers:
        clusters.world.put(PODS, filler)
    clusters.world.engine.drain()
    clusters.place_all(1)
    for filler in fillers:
        clusters.world.put(PODS, None, filler)
    clusters.world.engine.drain()
    clusters.only = None
    clusters.place_all(120)


def test_a_node_that_changes_is_judged_by_each_template():
    clusters = InTurn(1)
    clusters.place_all(200)
    for number in range(40):
        name = f"n{number}"
        old, new = clusters.nodes[name], clusters.node(name)
        clusters.world.put(NODES, new, old)
        clusters.nodes[name] = new
        clusters.world.engine.drain()
        clusters.place_all(5)
    assert clusters.in_turn > 30


def test_a_node_that_changed_before_turns_ended_is_noticed_by_all():
    """Cordoned while templates took turns; then a node is filled, which ends them."""
    clusters = InTurn(2, nodes=20, cpus=("64",))
    clusters.place_all(200)
    assert clusters.in_turn == 40
    free = [node for node in clusters.nodes.values() if not node.taints]
    for node in free[:3]:
        spec = msgspec.structs.replace(node.spec, unschedulable=True)
        clusters.world.put(NODES, msgspec.structs.replace(node, spec=spec), node)
    clusters.world.engine.drain()
    clusters.place_all(1)
    assert clusters.in_turn == 40
    clusters.world.put(PODS, make_pod("filler", cpu="63", node=free[4].name))
    clusters.world.engine.drain()
    clusters.place_all(1)
    assert clusters.in_turn == 0
    clusters.place_all(40)


def test_pods_of_which_more_matters_than_amounts_take_no_turns():
    clusters = InTurn(0)
    clusters.more = {"requests": {"ephemeral-storage": "1Gi"}}
    clusters.place_all(120)
    assert not clusters.seen["in turn"]


def test_templates_that_differ_in_what_looks_at_their_nodes_do_not_end_each_others_turns():
    """Ports make one more plugin look at the pods of a node."""
    clusters = InTurn(0)
    clusters.place_all(200)
    before = clusters.in_turn
    clusters.more = {"ports": [8080]}
    clusters.only = 5
    clusters.place_all(3)
    clusters.more, clusters.only = {}, None
    clusters.place_all(40)
    assert clusters.in_turn >= before > 30


def test_of_more_templates_than_can_be_kept_the_oldest_leave():
    clusters = InTurn(0)
    stores = clusters.world.engine.stores
    clusters.reuse = ReuseCache(lambda resource: stores[resource].version, template_bytes=10 * 40 * 40)
    clusters.warm = NodeChooser(clusters.reuse)
    clusters.place_all(300)
    assert clusters.in_turn == len(clusters.reuse.templates)
    assert 0 < clusters.in_turn < 40


@pytest.mark.parametrize("method", ["filter_amounts", "fits_amounts", "score_amounts", "score_many"])
def test_a_plugin_that_fails_for_many_pods_is_asked_for_each(method, monkeypatch, caplog):
    def fail(*args: Any) -> None:
        raise RuntimeError("not today")

    clusters = InTurn(0)
    clusters.place_all(100)
    monkeypatch.setattr(NodeResourcesFit, method, fail)
    clusters.place_all(100)
    assert clusters.in_turn == 0
    assert caplog.text.count("RuntimeError: not today") == 1, "once until turns may begin again"
