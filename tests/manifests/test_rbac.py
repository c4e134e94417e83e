"""RBAC from what plugins declare: nothing too little, nothing too much."""

from __future__ import annotations

import pytest

from moorage.api.resources import PODS, custom
from moorage.app.configuration import EMPTY, configure
from moorage.framework.access import LISTED, Access
from moorage.framework.points import FilterPlugin
from moorage.manifests.rbac import Rule, as_rules, kebab, packs

USAGE = custom("usage.example.com", "v1", "nodeusages", "NodeUsage")


class NodeUsageFilter(FilterPlugin):
    name = "NodeUsageFilter"
    needs = (Access(USAGE, LISTED), Access(PODS), Access(USAGE, ("patch",), "status"))

    def filter(self, state, pod, node):
        return None


def profile(**plugins):
    body = {"multiPoint": plugins}
    return (
        f"{EMPTY}profiles:\n- schedulerName: mine\n  plugins: "
        + str(body).replace("'", '"').replace("True", "true")
    )  # fmt: skip


def by_name(configuration):
    return {pack.name: pack for pack in packs(configuration)}


def test_the_default_profile():
    found = by_name(configure(EMPTY, discover=False))
    assert list(found) == ["base", "delegated-auth", "preemption", "spread-defaults", "volumes"]
    assert found["base"].rights() == {
        ("", "nodes", "list"),
        ("", "nodes", "watch"),
        ("", "namespaces", "list"),
        ("", "namespaces", "watch"),
        ("", "pods", "get"),
        ("", "pods", "list"),
        ("", "pods", "watch"),
        ("", "pods/binding", "create"),
        ("", "pods/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
    }
    assert found["preemption"].rights() == {
        ("", "pods", "delete"),
        ("policy", "poddisruptionbudgets", "list"),
        ("policy", "poddisruptionbudgets", "watch"),
    }


def test_never_what_no_scheduler_should_have():
    granted = set().union(*(pack.rights() for pack in packs(configure(EMPTY, discover=False))))
    resources = {resource for _, resource, _ in granted}
    assert not resources & {"*", "secrets", "configmaps", "pods/exec", "nodes/proxy", "bindings"}
    assert not {verb for _, _, verb in granted} & {"*", "deletecollection", "escalate", "impersonate"}
    assert {verb for _, resource, verb in granted if resource == "nodes"} == {"list", "watch"}
    assert ("", "pods", "update") not in granted
    assert ("", "pods", "patch") not in granted


@pytest.mark.parametrize(
    ("plugin", "pack"), [("DefaultPreemption", "preemption"), ("PodTopologySpread", "spread-defaults")]
)
def test_a_disabled_plugin_leaves_no_right_behind(plugin, pack):
    assert pack in by_name(configure(profile(), discover=False))
    assert pack not in by_name(configure(profile(disabled=[{"name": plugin}]), discover=False))


def test_without_pod_affinity_no_plugin_reads_namespaces():
    found = by_name(configure(profile(disabled=[{"name": "InterPodAffinity"}]), discover=False))
    assert not [right for right in found["base"].rights() if right[1] == "namespaces"]


def test_a_plugin_of_ones_own_has_a_role_of_its_own():
    text = profile(enabled=[{"name": "NodeUsageFilter"}])
    found = by_name(configure(text, plugins=[NodeUsageFilter], discover=False))
    assert found["plugin-node-usage-filter"].rules == (
        Rule("usage.example.com", ("nodeusages",), ("list", "watch")),
        Rule("usage.example.com", ("nodeusages/status",), ("patch",)),
    )


def test_two_profiles_share_what_they_need_alike():
    two = EMPTY + "profiles:\n- schedulerName: a\n- schedulerName: b\n"
    assert packs(configure(two, discover=False)) == packs(configure(EMPTY, discover=False))


def test_rules_stand_together_by_verbs():
    rights = {("", "b", "watch"), ("", "b", "list"), ("", "a", "list"), ("", "a", "watch"), ("x", "a", "get")}
    assert as_rules(rights) == (Rule("", ("a", "b"), ("list", "watch")), Rule("x", ("a",), ("get",)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("NodeUsage", "node-usage"), ("sample", "sample"), ("GPU_Quota", "gpu-quota"), ("Ünder", "nder")],
)
def test_role_names(name, expected):
    assert kebab(name) == expected
