"""NetworkOverhead against a plain form pod by pod, in dry runs, and while its objects change."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import MoorageError
from moorage.api.node import ZONE
from moorage.api.resources import NODES, PODS, Unstructured
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.network_aware.app_groups import APPGROUPS, GROUP, WORKLOAD, AppGroup, read
from moorage.contrib.network_aware.costs import NETWORKTOPOLOGIES, NetworkTopology
from moorage.manifests import DeployOptions, manifests
from moorage.testing import Cluster, make_pod
from tests.contrib.configs import enabling
from tests.contrib.network_aware.shop import app_group, at, member, topology
from tests.plugins.explained import explained
from tests.plugins.one_plugin import ask

REGIONS, ZONES = ("", "r1", "r2"), ("", "z1", "z2", "z3")
REFUSED = "does not meet several network requirements from Workload dependencies"


def cluster_with(args: dict[str, Any] | None = None, **options: Any) -> Cluster:
    config = enabling("NetworkOverhead", args, weight=100)
    return Cluster(config=config, verify_reuse=True, flush_after=None, **options)


def plain(node, hosts, needs, zones, regions):
    """Satisfied, violated and cost of one node: each pod that is depended on by itself."""
    satisfied = violated = total = 0
    region, zone = node[1:]
    for name, workload in hosts:
        for wanted, most in needs:
            if wanted != workload:
                continue
            if name is None:
                total += 100
                continue
            if name[0] == node[0]:
                satisfied += 1
                continue
            cost = regions.get((region, name[1]))
            if not any(name[1:]):
                violated, total = violated + 1, total + 100
                continue
            if region == name[1]:
                if zone == name[2]:
                    satisfied, total = satisfied + 1, total + 1
                    continue
                cost = zones.get((zone, name[2]))
            total += 100 if cost is None else cost
            satisfied += cost is not None and cost <= most
            violated += cost is not None and cost > most
    return satisfied, violated, total


costs = st.integers(0, 12)


@given(
    nodes=st.lists(st.tuples(st.sampled_from(REGIONS), st.sampled_from(ZONES)), min_size=1, max_size=6),
    placed=st.lists(st.tuples(st.integers(-1, 5), st.sampled_from(["db", "web", "cart"])), max_size=8),
    needs=st.lists(st.tuples(st.sampled_from(["db", "web"]), costs), min_size=1, max_size=3),
    zones=st.dictionaries(st.tuples(st.sampled_from(ZONES[1:]), st.sampled_from(ZONES)), costs, max_size=6),
    regions=st.dictionaries(st.tuples(st.sampled_from(REGIONS[1:]), st.sampled_from(REGIONS)), costs),
)
def test_verdicts_and_costs_are_those_of_the_plain_form(nodes, placed, needs, zones, regions):
    places = [(f"n{i}", *place) for i, place in enumerate(nodes)]
    members = [(places[number] if 0 <= number < len(places) else None, kind) for number, kind in placed]
    pods = [member(f"p{i}", kind, node=host[0] if host else "gone") for i, (host, kind) in enumerate(members)]
    custom = {"appgroups": [app_group(needs={"cart": needs})], "networktopologies": [topology(zones, regions)]}
    asked = ask("NetworkOverhead", member("p", "cart"), [at(*place) for place in places], pods, custom=custom)
    expected = {place[0]: plain(place, members, needs, zones, regions) for place in places}
    assert asked.scores() == {name: cost for name, (_, _, cost) in expected.items()}
    explained(asked.plugin, asked.pod, asked.world.nodes)
    assert {name: reasons for name, (_, reasons) in asked.refused().items()} == {
        name: (f"Node {name} {REFUSED}: Satisfied: {satisfied} Violated: {violated}",)
        for name, (satisfied, violated, _) in expected.items()
        if violated > satisfied
    }


@pytest.mark.parametrize("seed", range(5))
def test_answers_that_are_used_again_are_those_of_now(seed):
    """`verify_reuse` compares; members come and go, nodes move, costs change."""
    rng = random.Random(seed)
    needs = {"cart": [("db", 5), ("web", 2)], "web": [("db", 9)]}
    with cluster_with() as cluster:
        cluster.add(at(f"n{i}", rng.choice(REGIONS), rng.choice(ZONES), pods=12) for i in range(6))
        cluster.add(app_group(needs=needs), topology({("z1", "z2"): 3, ("z2", "z1"): 8}, {("r1", "r2"): 9}))
        for number in range(40):
            group = rng.choice(["shop", "shop", "", "missing"])
            cluster.add(member(f"p{number}", rng.choice(["db", "web", "cart"]), group))
            cluster.settle()
            match rng.randrange(5):
                case 0:
                    cluster.label_node(f"n{rng.randrange(6)}", **{ZONE: rng.choice(ZONES[1:])})
                case 1:
                    spec = topology({("z1", "z2"): rng.randrange(12), ("z3", "z1"): 4})["spec"]
                    cluster.patch(NETWORKTOPOLOGIES, "nt-default", {"spec": spec}, "default")
                case 2:
                    cluster.delete(rng.choice(cluster.pods()))
            cluster.settle()
        cluster.validate()


def near_and_far(cluster: Cluster, needs: list[tuple[str, int]]) -> None:
    """A database in one zone, and another zone at a cost of 10."""
    cluster.add(at("near", "r", "z1"), at("far", "r", "z2"), app_group(needs={"cart": needs}))
    cluster.add(topology({("z2", "z1"): 10, ("z1", "z2"): 10}), member("db", "db", node="near"))


def test_a_pod_goes_where_its_dependencies_are_cheap():
    with cluster_with() as cluster:
        near_and_far(cluster, [("db", 100)])
        cluster.add([member(f"c{i}", "cart") for i in range(3)], member("other", "cart", "bank"))
        cluster.settle()
        assert {cluster.node_of(f"c{i}") for i in range(3)} == {"near"}
        assert cluster.node_of("other") == "far"


def test_a_node_that_is_too_far_away_is_refused_with_the_numbers():
    with cluster_with() as cluster:
        near_and_far(cluster, [("db", 5)])
        cluster.cordon("near")
        cluster.add(member("c", "cart"))
        cluster.settle()
        assert f"1 Node far {REFUSED}: Satisfied: 0 Violated: 1" in cluster.events("c")[0].note


@pytest.mark.parametrize(
    ("heals", "change"),
    [
        (True, lambda c: c.delete(c.pod("db"))),
        (True, lambda c: c.patch(PODS, "db", {"metadata": {"labels": {WORKLOAD: "other"}}}, "default")),
        (True, lambda c: c.add(member("db2", "db", node="far"))),
        (True, lambda c: c.patch(PODS, "c", {"metadata": {"labels": {GROUP: None}}}, "default")),
        (True, lambda c: c.add(at("second", "r", "z1"))),
        (True, lambda c: c.label_node("far", **{ZONE: "z1"})),
        (True, lambda c: c.delete(c.node("near"))),
        (True, lambda c: c.delete(app_group())),
        (True, lambda c: c.patch(APPGROUPS, "shop", {"spec": app_group(needs={})["spec"]}, "default")),
        (True, lambda c: c.delete(topology({}))),
        (True, lambda c: c.patch(NETWORKTOPOLOGIES, "nt-default", {"spec": topology({})["spec"]}, "default")),
        (False, lambda c: c.add(member("db2", "db", "bank", node="far"))),
        (False, lambda c: c.add(member("c2", "cart", node="far"))),
        (False, lambda c: c.patch(PODS, "db", {"metadata": {"labels": {"colour": "red"}}}, "default")),
        (False, lambda c: c.patch(NODES, "far", {"metadata": {"labels": {"colour": "red"}}})),
        (False, lambda c: c.patch(APPGROUPS, "shop", {"status": {"runningWorkloads": 2}}, "default")),
        (False, lambda c: c.add(app_group("bank"), topology({}, name="another"))),
    ],
)  # fmt: skip
def test_a_refused_pod_is_woken_by_what_may_help_and_by_nothing_else(heals, change):
    with cluster_with() as cluster:
        near_and_far(cluster, [("db", 5)])
        cluster.cordon("near")
        cluster.add(member("c", "cart"))
        cluster.settle(30)
        assert cluster.record("c").attempt == 1
        change(cluster)
        cluster.settle(30)
        assert bool(cluster.node_of("c")) is heals
        assert (cluster.record("c").attempt > 1) is heals


@pytest.mark.parametrize(("priority", "victims"), [(0, ()), (100, ("default/batch",))])
def test_preemption_does_not_send_away_the_pods_that_make_a_node_near_enough(priority, victims):
    """On each node one database is near enough and one too far away: without the near one the node is of no
    use. Databases of high priority stay, so there another pod may go."""
    with cluster_with() as cluster:
        cluster.add(at("a", "r", "z1", cpu="4"), at("b", "r", "z2", cpu="2"))
        cluster.add(topology({("z1", "z2"): 9, ("z2", "z1"): 9}), app_group(needs={"cart": [("db", 5)]}))
        cluster.add(member(f"db-{node}", "db", node=node, cpu="2", priority=priority) for node in ("a", "b"))
        cluster.add(make_pod("batch", node="a", cpu="2"), member("p", "cart", cpu="2", priority=50))
        cluster.settle()
        assert cluster.record("p").victims == victims


def test_a_pod_without_dependencies_preempts_members_of_any_group():
    with cluster_with() as cluster:
        near_and_far(cluster, [("db", 5)])
        cluster.add(member(f"big-{node}", "db", node=node, cpu="3") for node in ("near", "far"))
        cluster.add(make_pod("p", cpu="3", priority=50))
        cluster.settle()
        assert len(cluster.record("p").victims) == 1


def test_the_first_namespace_that_has_an_object_decides():
    args = {"namespaces": ["net", "default"], "networkTopologyName": "nt"}
    with cluster_with(args) as cluster:
        near_and_far(cluster, [("db", 5)])
        cluster.add(app_group(needs={"cart": [("db", 20)]}, namespace="net"), topology({}, name="nt"))
        cluster.add(topology({("z2", "z1"): 10}, name="nt", namespace="net"))
        cluster.cordon("near")
        cluster.add(member("c", "cart"))
        cluster.settle()
        assert cluster.node_of("c") == "far"
        cluster.delete(app_group(namespace="net"))
        cluster.add(member("d", "cart"))
        cluster.settle()
        assert REFUSED in cluster.events("d")[0].note


@pytest.mark.parametrize("field", ["weightsName", "networkTopologyName"])
def test_an_argument_that_is_empty_is_refused_with_its_field(field):
    with pytest.raises(ConfigError, match=rf"args\.{field}: Required value"):
        configure(enabling("NetworkOverhead", {field: ""}), discover=False)


def test_an_empty_list_of_namespaces_means_default():
    with cluster_with({"namespaces": []}) as cluster:
        near_and_far(cluster, [("db", 5)])
        cluster.add(member("c", "cart"))
        cluster.settle()
        assert cluster.node_of("c") == "near"


@pytest.mark.parametrize(
    ("obj", "form", "text"),
    [
        (app_group(needs={"cart": [("db", "5")]}), AppGroup, "AppGroup default/shop: Expected `int`"),  # type: ignore[list-item]
        (
            topology({("z1", "z2"): "ten"}),  # type: ignore[dict-item]
            NetworkTopology,
            r"NetworkTopology default/nt-default: .*spec\.weights\[0\].*networkCost.*does not count until",
        ),
    ],
)
def test_an_object_that_cannot_be_read_is_named_with_its_field(obj, form, text):
    with pytest.raises(MoorageError, match=text):
        read(Unstructured(obj), form)


@pytest.mark.parametrize(
    ("plugin", "kind", "without"),
    [
        ("NetworkOverhead", APPGROUPS, ()),
        ("NetworkOverhead", NETWORKTOPOLOGIES, ()),
        ("TopologicalSort", APPGROUPS, ("PrioritySort",)),
    ],
)
def test_a_kind_that_is_not_served_is_reported(plugin, kind, without):
    with Cluster(config=enabling(plugin, without=without)) as cluster:
        cluster.settle()
        cluster.scheduler.engine.stores[kind].known = False
        found = next(iter(cluster.scheduler.engine.profiles.values())).plugins[plugin]
        with pytest.raises(MoorageError, match=f"{plugin}: .* does not serve {kind.plural}.{kind.group}"):
            cluster.run(found.run())


def test_the_manifests_have_the_kinds_with_a_status_that_is_written_with_the_object():
    text = enabling("NetworkOverhead")
    made = manifests(configure(text, discover=False), text, DeployOptions(image="moorage:test"))
    versions = {
        obj["metadata"]["name"]: obj["spec"]["versions"][0] for obj in made if obj["kind"] == "CustomResourceDefinition"
    }
    assert sorted(versions) == [f"{kind.plural}.{kind.group}" for kind in (APPGROUPS, NETWORKTOPOLOGIES)]
    assert all("subresources" not in version for version in versions.values())
