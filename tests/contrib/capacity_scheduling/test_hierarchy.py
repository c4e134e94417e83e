"""Quotas below quotas: what counts where, whose max holds, who takes back from whom, what is no parent."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import Unstructured
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS, PARENT, Quota, QuotaLevel, link
from moorage.testing import Cluster, make_node, make_pods
from tests.contrib.capacity_scheduling.tenants import end_terminating, existing, quota, tenants, used


def fill(cluster: Cluster, namespace: str, number: int, **options: Any) -> None:
    name = f"{namespace}{options.pop('suffix', '')}"
    cluster.add(make_pods(number, name, namespace=namespace, cpu="1", **options))
    cluster.settle(5)


def bound(cluster: Cluster, namespace: str) -> int:
    return sum(pod.namespace == namespace and pod.is_assigned for pod in cluster.pods())


def linked(*objects: dict[str, Any]) -> dict[str, Quota]:
    quotas = {obj["metadata"]["namespace"]: Quota(Unstructured(obj), {}) for obj in objects}
    link(quotas, {name: {} for name in quotas})
    return quotas


def parent_of(found: Quota) -> str:
    return found.parent.namespace if isinstance(found.parent, Quota) else ""


@pytest.mark.parametrize(
    ("named", "parent", "remark"),
    [
        ("org/main", "org", ""),
        ("main", "org", ""),
        ("", "", ""),
        ("org/other", "", 'there is no quota "org/other" that counts'),
        ("org", "", 'there is no quota "org" that counts'),
        ("q", "", 'several quotas are called "q": write namespace/name'),
        ("team/q", "", '"team/q" is below this quota'),
    ],
    ids=["key", "name", "none", "no such quota", "a namespace", "ambiguous", "itself"],
)
def test_an_annotation_names_the_parent_or_a_remark_says_why_not(named, parent, remark):
    quotas = linked(quota("org", name="main"), quota("team", parent=named), quota("third"))
    assert parent_of(quotas["team"]) == parent
    assert remark in quotas["team"].remark
    assert bool(remark) == bool(quotas["team"].remark)


def test_quotas_in_a_circle_have_no_parent_and_those_below_them_have():
    quotas = linked(quota("a", parent="b/q"), quota("b", parent="a/q"), quota("c", parent="a/q"))
    assert [parent_of(quotas[name]) for name in "abc"] == ["", "", "a"]
    assert [bool(quotas[name].remark) for name in "abc"] == [True, True, False]


@pytest.mark.parametrize(
    ("least", "shares", "expected", "rest"),
    [(10, (3, 4), 10, 3), (5, (3, 4), 7, 0), (None, (3, 4), 7, 0), (2, (None, None), 2, 2)],
    ids=["more than its children", "less than its children", "nothing", "children have nothing"],
)
def test_a_share_is_the_min_or_what_the_children_have_and_own_pods_have_the_rest(least, shares, expected, rest):
    children = [quota(f"c{i}", share, parent="org/q") for i, share in enumerate(shares)]
    org = linked(quota("org", least), *children)["org"]
    assert org.min.get("cpu", 0) == expected * 1000
    assert isinstance(org.leaf, QuotaLevel)
    assert org.leaf.min.get("cpu", 0) == rest * 1000


def test_a_chain_of_quotas_may_be_long():
    number = 2000
    chain = [quota(f"q{i}", parent=f"q{i - 1}/q" if i else "") for i in range(number)]
    quotas = linked(*chain, quota("end", 1, parent=f"q{number - 1}/q"))
    assert quotas["q0"].min == {"cpu": 1000}


def test_usage_counts_towards_all_quotas_above_and_their_status_shows_it():
    objects = quota("org", 4), quota("team", 2, parent="org/q"), quota("group", 1, parent="team/q")
    with tenants(*objects) as cluster:
        for namespace in ("org", "team", "group"):
            fill(cluster, namespace, 1)
        assert [used(cluster, name)["cpu"] for name in ("org", "team", "group")] == ["3", "2", "1"]
        cluster.delete(existing(cluster, "group-0", "group"))
        cluster.settle(5)
        assert [used(cluster, name)["cpu"] for name in ("org", "team", "group")] == ["2", "1", "0"]


def test_the_max_of_every_quota_above_holds():
    with tenants(quota("org", 4, 2), quota("a", 2, parent="org/q"), quota("b", 2, 4, parent="org/q")) as cluster:
        fill(cluster, "a", 1)
        fill(cluster, "b", 2)
        assert bound(cluster, "b") == 1
        assert "ElasticQuota org is more than Max" in cluster.record("b-1", "b").message
        cluster.delete(existing(cluster, "a-0", "a"))
        cluster.settle(15)
        assert bound(cluster, "b") == 2


COMPANY = (
    quota("org", 4),
    quota("a", 2, parent="org/q"),
    quota("b", 2, parent="org/q"),
    quota("other", 2),
    make_node("n0", cpu="6"),
)


def test_what_was_borrowed_is_taken_back_from_the_closest_relatives_first():
    """`b` has borrowed from its sibling, `other` from both; each of them would do."""
    with tenants(*COMPANY) as cluster:
        fill(cluster, "b", 3, priority=1000)
        fill(cluster, "other", 3)
        fill(cluster, "a", 1)
        assert cluster.record("a-0", "a").victims == ("b/b-2",)
        assert end_terminating(cluster) == ["b/b-2"]
        cluster.settle(5)
        assert bound(cluster, "a") == 1


def test_further_away_is_looked_where_no_relative_borrows():
    with tenants(*COMPANY) as cluster:
        fill(cluster, "b", 2)
        fill(cluster, "other", 4, priority=1000)
        fill(cluster, "a", 1)
        assert cluster.record("a-0", "a").victims == ("other/other-3",)


def test_a_quota_beyond_its_min_takes_back_for_its_parent_that_is_not():
    """`org` is guaranteed 4 and has 3, all of them pods of `b`, whose own share is 2."""
    with tenants(*COMPANY) as cluster:
        fill(cluster, "b", 3)
        fill(cluster, "other", 3, priority=1000)
        fill(cluster, "b", 1, suffix="-late")
        assert cluster.record("b-late-0", "b").victims == ("other/other-2",)


def test_a_quota_within_its_min_loses_nothing_where_its_parent_borrows():
    """`org` has 5 of 4, all borrowed by `b`; `a` has what is its own."""
    with tenants(*COMPANY) as cluster:
        fill(cluster, "a", 2)
        fill(cluster, "b", 3)
        fill(cluster, "other", 1)
        fill(cluster, "other", 1, suffix="-late")
        assert cluster.record("other-late-0", "other").victims == ("b/b-2",)


def test_a_parent_that_is_none_is_named_in_the_status_until_it_comes():
    def message(cluster: Cluster) -> Any:
        return cluster.run(cluster.client.get(ELASTICQUOTAS, "q", "team")).get("status", "message")

    with tenants(quota("team", 1, parent="org/q")) as cluster:
        cluster.settle(5)
        assert message(cluster) == (
            f'annotation {PARENT}: there is no quota "org/q" that counts: create it or name another; '
            "until then this one has no parent"
        )
        fill(cluster, "team", 1)
        assert bound(cluster, "team") == 1
        cluster.add(quota("org", 4, 1))
        cluster.settle(5)
        assert not message(cluster)
        assert used(cluster, "org")["cpu"] == "1"
        fill(cluster, "team", 1, suffix="-late")
        assert "ElasticQuota org is more than Max" in cluster.record("team-late-0", "team").message


def test_another_parent_counts_at_once_and_wakes_pods():
    with tenants(quota("org", 4, 0), quota("team", 1, parent="org/q")) as cluster:
        fill(cluster, "team", 1)
        assert bound(cluster, "team") == 0
        cluster.patch(ELASTICQUOTAS, "q", {"metadata": {"annotations": {PARENT: None}}}, namespace="team")
        cluster.settle(15)
        assert bound(cluster, "team") == 1
        assert used(cluster, "org")["cpu"] == "0"
