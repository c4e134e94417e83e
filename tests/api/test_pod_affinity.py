"""Compiled pod affinity terms: short keys, shared while a pod uses them, and freed afterwards."""

from __future__ import annotations

import gc
import weakref

from moorage.api.meta import LabelSelector, ObjectMeta, key_of
from moorage.api.pod import Affinity, Pod, PodAffinityTerm, PodAntiAffinity, PodSpec
from moorage.api.pod_affinity import _recent, compile_pod_terms


def with_terms(name: str, *apps: str) -> Pod:
    terms = tuple(
        PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"app": app})) for app in apps
    )
    away = PodAntiAffinity(required_during_scheduling_ignored_during_execution=terms)
    return Pod(
        metadata=ObjectMeta(name=name, uid=name, namespace="default"),
        spec=PodSpec(affinity=Affinity(pod_anti_affinity=away)),
    )


def test_keys_of_equal_records_are_equal_and_short():
    long = [with_terms("p", *map(str, range(500))).spec.affinity for _ in range(2)]

    assert key_of(long[0]) == key_of(long[1]) != key_of(with_terms("p", "1").spec.affinity)
    assert len(key_of(long[0])) == 32


def test_compiled_terms_are_shared_while_a_pod_lives_and_gone_with_it():
    pod, other = (with_terms(name, *map(str, range(500))) for name in "ab")
    kept = compile_pod_terms(pod)
    assert compile_pod_terms(other) is kept
    gone = weakref.ref(kept)
    del kept
    for index in range(10):  # until they are not among the latest
        compile_pod_terms(with_terms("c", *(f"{index}-{j}" for j in range(500))))
    gc.collect()

    assert gone() is None
    assert _recent.weight <= 4096


def test_terms_that_were_just_compiled_are_kept_however_many_they_are() -> None:
    terms = tuple(PodAffinityTerm(topology_key="t", namespaces=(f"n{i}",)) for i in range(5000))
    affinity = Affinity(pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=terms))
    pod = Pod(metadata=ObjectMeta(name="p", namespace="n"), spec=PodSpec(affinity=affinity))
    number = id(compile_pod_terms(pod))
    assert id(compile_pod_terms(pod)) == number
