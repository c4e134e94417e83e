"""SySched against a plain form on sets, while profiles and pods come and go."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from moorage.api.pod import SeccompProfile, SecurityContext
from moorage.contrib.sysched import SECCOMP_PROFILES, count_bits, profiles_of
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_container
from tests.contrib.configs import enabling


def context(name, namespace="default", kind="Localhost"):
    path = f"operator/{namespace}/{name}.json"
    return SecurityContext(seccomp_profile=SeccompProfile(type=kind, localhost_profile=path))


def profile(name, calls, namespace="default"):
    header = {"apiVersion": SECCOMP_PROFILES.api_version, "kind": SECCOMP_PROFILES.kind}
    groups = [{"action": "SCMP_ACT_ALLOW", "names": calls}, {"action": "SCMP_ACT_KILL", "names": ["reboot"]}]
    return {**header, "metadata": {"name": name, "namespace": namespace}, "spec": {"syscalls": groups}}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("operator/team/web.json", [("team", "web")]),
        ("localhost/operator/team/web.v1.json", [("team", "web.v1")]),
        ("team/web", [("team", "web")]),
        ("web.json", []),
        ("team/.json", []),
        ("/web.json", []),
        ("", []),
    ],
)
def test_a_profile_is_named_by_the_end_of_its_path(path, expected):
    found = SecurityContext(seccomp_profile=SeccompProfile(type="Localhost", localhost_profile=path))
    assert list(profiles_of(make_pod(security_context=found))) == expected


def test_profiles_of_pod_containers_and_annotations_count_together_and_other_types_do_not():
    container = make_container()
    containers = tuple(
        type(container)(name=kind, security_context=context(f"c-{kind}", kind=kind))
        for kind in ("Localhost", "RuntimeDefault")
    )
    annotations = {"seccomp.security.alpha.kubernetes.io/pod": "operator/default/a.json", "other": "x/y"}
    pod = make_pod(security_context=context("p"), containers=containers, annotations=annotations)
    assert sorted(profiles_of(pod)) == [("default", "a"), ("default", "c-Localhost"), ("default", "p")]


def expected_raw(calls, running):
    """As the definition has it: what the pod does not use of the node, and each pod of both together."""
    host = set().union(*running)
    return len(host - calls) + sum(len((host | calls) - other) for other in running) if running else 0


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_plain_form_while_profiles_change(seed):
    rng = random.Random(seed)
    names = [f"call{i}" for i in range(150)]
    sets = {f"s{i}": set(rng.sample(names, rng.randint(1, 90))) for i in range(6)}
    with Cluster(config=enabling("SySched"), verify_reuse=True) as cluster:
        cluster.add(profile(name, sorted(calls)) for name, calls in sets.items())
        cluster.add(make_node(f"n{i}") for i in range(4))
        placed: dict[str, list[str]] = {f"n{i}": [] for i in range(4)}
        for number in range(12):
            node, kind = rng.choice(sorted(placed)), rng.choice(sorted(sets))
            phase = rng.choice(["Running", "Pending"])
            cluster.add(make_pod(f"r{number}", node=node, phase=phase, security_context=context(kind)))
            placed[node] += [kind] if phase == "Running" else []
        cluster.settle()
        changed = set(rng.sample([*names, "extra"], 40))
        cluster.patch(SECCOMP_PROFILES, "s0", {"spec": profile("s0", sorted(changed))["spec"]}, "default")
        sets["s0"] = changed
        cluster.settle()
        plugin: Any = next(iter(cluster.scheduler.engine.profiles.values())).plugins["SySched"]
        for kind, calls in sets.items():
            pod = make_pod("p", security_context=context(kind))
            nodes = plugin.handle.nodes
            found = dict(zip(nodes.names, plugin.score_nodes(None, pod, nodes).tolist(), strict=True))
            assert found == {n: expected_raw(calls, [sets[k] for k in ks]) for n, ks in placed.items()}
        cluster.add(make_pod(f"p{i}", security_context=context("s1")) for i in range(3))
        cluster.settle()
        assert cluster.pending() == []


@pytest.mark.parametrize("numpy", [1, 2])
def test_bits_are_counted_with_and_without_the_help_of_numpy(numpy, monkeypatch):
    if numpy == 1:
        monkeypatch.delattr(np, "bitwise_count", raising=False)
    words = [0, 1, 2**63, 2**64 - 1, 0x5555_0000_0000_00FF]
    assert count_bits(np.array(words, dtype=np.uint64)).tolist() == [word.bit_count() for word in words]
