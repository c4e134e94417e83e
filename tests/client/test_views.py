"""Whatever happens between them, the informer's view ends up equal to the server's."""

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.resources import PODS
from moorage.client.informers import Informer
from moorage.framework.ports import Change
from moorage.sim import loop
from moorage.sim.loop import VirtualClock
from tests.client.model_server import ModelServer

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "delete", "recreate"]), NAMES),
    st.tuples(st.sampled_from(["cut", "end", "expire", "compact"])),
    st.tuples(st.just("refuse"), st.integers(1, 4)),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.005, 0.05, 2.0, 40.0, 700.0])),
)


@pytest.mark.parametrize("streaming", [False, True], ids=["paged lists", "streaming lists"])
@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=40), lag=st.integers(0, 5), seed=st.integers(0, 1000))
def test_the_view_ends_equal_to_the_server(streaming, steps, lag, seed):
    loop.run(scenario(steps, lag, seed, streaming), seed=seed)


async def scenario(steps: list[tuple[Any, ...]], lag: int, seed: int, streaming: bool) -> None:
    server: Any = ModelServer()
    for name in "abc":
        await server.put(name)
    server.lag = lag
    replica = Replica()
    informer = Informer(
        server, PODS, replica.take, clock=VirtualClock(), random=Random(seed), page_size=2, use_streaming_list=streaming
    )
    task = asyncio.create_task(informer.run())
    for name, *args in steps:
        await (asyncio.sleep(*args) if name == "wait" else getattr(server, name)(*args))
    await asyncio.sleep(1000.0)
    assert not task.done()
    assert replica.view == {obj.key: obj for obj in server.objects.values()} == informer.objects


class Replica:
    """A reader that knows the cluster from the deliveries alone, and checks that they make sense."""

    def __init__(self) -> None:
        self.view: dict[str, Any] = {}

    def take(self, change: Change) -> None:
        key = (change.new or change.old).key
        known = self.view.get(key)
        if change.new is None:
            assert known is not None
            assert known.uid == change.old.uid
            del self.view[key]
            return
        assert known == change.old, "old is what was delivered before"
        assert known is None or known.uid == change.new.uid
        self.view[key] = change.new
