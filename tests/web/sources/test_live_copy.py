"""A copy of the cluster of a running scheduler: when it is read again, and what it explains."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure
from moorage.client.credentials import Credentials
from moorage.snapshots.cluster import ClusterObjects
from moorage.web.sources.live_copy import LiveCopy
from moorage.web.sources.server_source import ServerSource
from tests.web.browser import clusters


class Copied(LiveCopy):
    """A copy of a cluster that needs no server."""

    def __init__(self) -> None:
        super().__init__(Credentials("https://scheduler", "test"))
        self.reads = 0

    async def _read(self) -> tuple[ClusterObjects, Configuration]:
        self.reads += 1
        configured = configure()
        return snapshots.read(json.dumps(clusters.story()).encode(), "story", configured.resources()), configured


def test_a_pending_pod_has_remedies_and_figures():
    found = asyncio.run(Copied().explain("default/train", 0.0)).explanation
    assert any(remedy["text"].startswith("Uncordon node cpu-3") for remedy in found["remedies"])
    [fit] = [group for group in found["refusals"] if group["plugin"] == "NodeResourcesFit"]
    assert fit["details"] == ["cpu: 1 short on 2 nodes"]


def test_questions_share_a_copy_until_the_pod_is_tried_again():
    async def ask() -> list[int]:
        copy, reads = Copied(), []
        for since in (0.0, 0.0, time.time() + 1):
            await asyncio.gather(copy.explain("default/train", since), copy.explain("default/small", 0.0))
            reads.append(copy.reads)
        return reads

    assert asyncio.run(ask()) == [1, 1, 2]


def test_a_copy_is_dropped_after_a_time_without_questions():
    async def ask() -> tuple[bool, bool]:
        copy = Copied()
        await copy.explain("default/train", 0.0)
        before = copy._copy is None
        copy._drop()
        return before, copy._copy is None

    assert asyncio.run(ask()) == (False, True)


def test_a_pod_that_is_gone_is_named():
    with pytest.raises(MoorageError, match="pod 'gone' does not exist"):
        asyncio.run(Copied().explain("default/gone", 0.0))


@pytest.mark.parametrize(
    ("context", "title"),
    [("staging", "context staging, scheduler at https://s"), ("", "scheduler at https://s")],
    ids=["kubeconfig", "token file"],
)
def test_the_header_names_context_and_server(context, title):
    assert ServerSource(Credentials("https://s", "test", context=context)).title == title
