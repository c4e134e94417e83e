"""Plugins whose messages the API cannot take: too long, with control characters, or with half a surrogate pair."""

from __future__ import annotations

import json
import logging

import pytest

from moorage.endpoints.v1.routes import as_json
from moorage.framework import FilterPlugin, PreFilterPlugin, Status
from moorage.testing import make_node, make_pod
from tests.faults.world import HttpCluster

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Chatty}]}
"""
MESSAGES = {
    "half a surrogate pair": "bad \ud800 text",
    "control characters": "bad \x00\x1b[2J\x7f text",
    "100 KB": "ü" * 50_000,
    "everything": "\udfff\x07漢" * 30_000,
}
EACH = pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)


@pytest.fixture(autouse=True)
def _no_log():
    """pytest-xdist cannot send a captured log that has half a surrogate pair."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def chatty(message: str, base: type) -> type:
    class Chatty(base):  # type: ignore[misc]
        name = "Chatty"

        def filter(self, state, pod, node):
            return Status.unschedulable(message)

        def pre_filter(self, state, pod, nodes):
            raise RuntimeError(message)

    return Chatty


def is_clean(text: str) -> bool:
    return all(character in "\n\t" or (character.isprintable() and character != "\x7f") for character in text)


@EACH
@pytest.mark.parametrize("base", [FilterPlugin, PreFilterPlugin], ids=["a status", "an exception"])
def test_b20_a_message_of_a_plugin_never_makes_a_write_fail(message, base):
    with HttpCluster(config=CONFIG, plugins=[chatty(message, base)]) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(30)
        (condition,) = cluster.the("p").status.conditions
        (event, *_) = cluster.events("p")
        assert (condition.type, event.reason) == ("PodScheduled", "FailedScheduling")
        for text, limit in ((condition.message, 32 * 1024), (event.note, 1024)):
            assert "0/1 nodes are available: 1 " in text or "Chatty" in text
            assert len(text.encode()) <= limit
            assert is_clean(text)
            assert text.endswith(" ...") or len(message) < 100
        patches = len(cluster.sent("PATCH", "/pods/p/status"))
        cluster.settle(600)
        assert len(cluster.sent("PATCH", "/pods/p/status")) == patches, "the condition is compared as it was written"


@EACH
def test_an_answer_of_the_endpoints_about_it_is_json(message):
    answer = as_json({"reasons": [message], message: 1})
    reasons = json.loads(bytes(answer.body).decode())["reasons"]
    assert reasons[0].encode()
