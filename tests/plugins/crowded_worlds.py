"""Random small clusters full of labels, in the form of conformance cases, and the plugins on top of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from hypothesis import strategies as st

from moorage.api import resources as kinds
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.app.configuration import Configuration
from moorage.explain.evaluate import EvaluatedCase, default_configuration, with_args
from moorage.runtime.profile import Profile

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
Json = dict[str, Any]

_values = st.sampled_from(["1", "2"])
labels = st.dictionaries(st.sampled_from(["app", "tier"]), _values, max_size=2)
spaces = st.sampled_from(["x", "y"])
keys = st.sampled_from([ZONE, HOSTNAME, "rack"])
expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "tier"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(_values, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(["app", "tier"]), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    ),
)
selectors = st.one_of(
    st.none(),
    st.fixed_dictionaries({"matchLabels": labels}),
    st.fixed_dictionaries({"matchExpressions": st.lists(expressions, max_size=2)}),
)
terms = st.fixed_dictionaries(
    {"labelSelector": selectors, "topologyKey": keys},
    optional={"namespaces": st.lists(spaces, max_size=2), "namespaceSelector": selectors},
)
preferences = st.fixed_dictionaries({"weight": st.integers(1, 3), "podAffinityTerm": terms})
both = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(preferences, max_size=2),
    },
)
affinities = st.fixed_dictionaries({}, optional={"podAffinity": both, "podAntiAffinity": both})
constraints = st.lists(
    st.fixed_dictionaries(
        {
            "maxSkew": st.integers(1, 2),
            "topologyKey": keys,
            "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": selectors,
        },
        optional={
            "minDomains": st.integers(1, 3),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
            "matchLabelKeys": st.lists(st.sampled_from(["app", "none"]), max_size=1),
        },
    ),
    max_size=3,
)


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Json:
    name = f"n{number}"
    found: dict[str, str] = {}
    if draw(st.integers(0, 5)):
        found[HOSTNAME] = name
    for key, values in ((ZONE, ["a", "b", ""]), ("rack", ["r", "s"])):
        value = draw(st.sampled_from([None, *values]))
        if value is not None:
            found[key] = value
    taints = [{"key": "t", "effect": "NoSchedule"}] if draw(st.integers(0, 4)) == 0 else []
    return {
        "metadata": {"name": name, "uid": name, "labels": found},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Json:
    meta: Json = {"name": name, "uid": name, "namespace": draw(spaces), "labels": draw(labels)}
    if node and draw(st.integers(0, 4)) == 0:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Json = {"containers": [{"name": "c"}], "affinity": draw(affinities)}
    if node:
        spec["nodeName"] = node
    else:
        spec["topologySpreadConstraints"] = draw(constraints)
        spec["nodeSelector"] = draw(st.sampled_from([{}, {"rack": "r"}]))
        spec["tolerations"] = draw(st.sampled_from([[], [{"operator": "Exists"}]]))
        if draw(st.booleans()):
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs"}
            meta["ownerReferences"] = [owner | {"controller": True}]
    return {"metadata": meta, "spec": spec}


@st.composite
def cases(draw: st.DrawFn) -> Json:
    count = draw(st.integers(1, 5))
    running = [draw(pods(f"p{i}", f"n{draw(st.integers(0, count - 1))}")) for i in range(draw(st.integers(0, 8)))]
    services = [
        {"metadata": {"name": f"s{i}", "uid": f"s{i}", "namespace": draw(spaces)}, "spec": {"selector": draw(labels)}}
        for i in range(draw(st.integers(0, 2)))
    ]
    sets = [
        {"metadata": {"name": "rs", "uid": f"rs-{space}", "namespace": space}, "spec": {"selector": draw(selectors)}}
        for space in draw(st.lists(spaces, unique=True, max_size=2))
    ]
    named = draw(st.lists(spaces, unique=True, max_size=2))
    spread_args = draw(
        st.sampled_from(
            [
                {"defaultingType": "System"},
                {
                    "defaultingType": "List",
                    "defaultConstraints": [
                        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
                        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
                    ],
                },
            ]
        )
    )
    affinity_args = {
        "hardPodAffinityWeight": draw(st.sampled_from([0, 1, 7])),
        "ignorePreferredTermsOfExistingPods": draw(st.booleans()),
    }
    return {
        "nodes": [draw(nodes(i)) for i in range(count)],
        "pods": running,
        "namespaces": [{"metadata": {"name": name, "uid": name, "labels": draw(labels)}} for name in named],
        "services": services,
        "replicaSets": sets,
        "pod": draw(pods("incoming")),
        "args": {"PodTopologySpread": spread_args, "InterPodAffinity": affinity_args},
    }


def alone(plugin: str, args: Json) -> Configuration:
    """The default profile without all plugins but this one and those that every profile needs."""
    configured = with_args(default_configuration(), args)
    [profile] = configured.profiles
    points = {
        point: refs if point in ("queueSort", "bind") else tuple(ref for ref in refs if ref.name == plugin)
        for point, refs in profile.points.items()
    }
    return dataclasses.replace(configured, profiles=(msgspec.structs.replace(profile, points=points),))


class Crowd:
    """A case as a running engine, with a profile of one plugin."""

    def __init__(self, case: Json, plugin: str) -> None:
        self.case = case
        self.world = EvaluatedCase({**case, "args": {}}, alone(plugin, case.get("args") or {}))
        self.profile: Profile = self.world.profile
        self.plugin: Any = self.profile.plugins[plugin]
        self.pod: Pod = self.world.pod

    def nodes(self) -> list[Node]:
        return [view.node for view in self.world.nodes]

    def pods(self) -> list[Pod]:
        """On nodes that exist."""
        return [pod for view in self.world.nodes for pod in view.pods]

    def namespace_labels(self) -> dict[str, dict[str, str]]:
        lister = self.world.engine.services.lister(kinds.NAMESPACES)
        return {namespace.name: namespace.labels for namespace in lister.list()}
