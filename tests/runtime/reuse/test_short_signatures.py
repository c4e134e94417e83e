"""Signatures outlive pods, so they are short, whatever a tenant writes into a pod."""

from __future__ import annotations

import pytest

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.bench.hostile_pods import FIELDS
from moorage.bench.world import BenchWorld, raw_pod
from moorage.runtime.reuse.signatures import Signatures, Signer, template_of


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer(BenchWorld(2, 2).profile)


def filled(name: str, size: int) -> Pod:
    raw = raw_pod("p", labels={"app": "p"})
    FIELDS[name](raw, "t", size)
    found = decoding.convert(PODS, raw)
    assert isinstance(found, Pod)
    return found


@pytest.mark.parametrize("name", FIELDS)
def test_a_signature_does_not_grow_with_a_field(signer: Signer, name: str) -> None:
    found, other = signer.signature(filled(name, 2000)), signer.signature(filled(name, 2001))
    assert len(repr(found)) < 3000
    assert len(repr(template_of(filled(name, 2000)))) < 1000
    # Finalizers, secrets, annotations and the like decide nothing.
    unread = ("annotations", "finalizers", "image-pull-secrets", "conditions", "overhead", "owner-references")
    assert (found is not other) or name in unread


def test_a_signature_goes_with_its_last_pod() -> None:
    signatures = Signatures()
    kept = signatures.signature("kept", "nodes")
    for number in range(30):
        signatures.signature(number, number)
    assert len(signatures) == 1
    assert signatures.signature("kept", "nodes") is kept
    assert signatures.signature("other", "nodes").about_nodes is kept.about_nodes
