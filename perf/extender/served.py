"""The server of `python -m perf.extender`: the application of `moorage extender` on a cluster in memory, as a
process of its own.

Its plugin is vectorized: it rejects every other node and scores by free CPU. The arguments are the numbers of
nodes and running pods, and the seed. It prints its port on standard output and ends when its standard input
is closed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import numpy as np
import uvloop

from moorage.api.pod import Pod
from moorage.app.configuration import configure
from moorage.bench.world import BenchWorld
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import Nodes, Refusals
from moorage.framework.optional import VectorFilterPlugin, VectorScorePlugin
from moorage.run.extender.application import extender_app
from moorage.run.extender.selecting import select
from moorage.run.extender.verbs import ExtenderVerbs
from moorage.serving.server import Listener

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: EveryOther}]}}}]
"""


class EveryOther(VectorFilterPlugin, VectorScorePlugin):
    name = "EveryOther"

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals:
        return nodes.refuse(nodes.rows % 2 == 1, "node(s) had an odd number")

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        return np.clip(100 * nodes.free("cpu") // np.maximum(nodes.allocatable("cpu"), 1), 0, 100)


async def _serve(nodes: int, pods: int, seed: int) -> None:
    chosen = select(configure(CONFIG, plugins=[EveryOther], discover=False))
    world = BenchWorld(nodes, pods, seed=seed, configured=chosen.configuration)
    listener = Listener("127.0.0.1", 0, None)
    await listener.start(extender_app(ExtenderVerbs(world.engine, chosen.verbs)))
    sys.stdout.write(f"{listener.port}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await listener.stop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(*map(int, sys.argv[1:])))
