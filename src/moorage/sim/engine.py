"""An engine whose cluster is a world in memory, in virtual time: for simulations and what-if."""

from __future__ import annotations

import random

from moorage.api.resources import Unstructured
from moorage.app.configuration import Configuration
from moorage.framework.ports import EventRecorder
from moorage.scheduler.assembly import assemble
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Ports
from moorage.scheduler.records import RecordRing
from moorage.sim.world import World


def simulated_engine(
    configured: Configuration,
    world: World,
    seed: int,
    recorder: EventRecorder,
    records: RecordRing | None = None,
) -> Engine:
    """An engine with all profiles of the configuration, connected with a world in memory: what it writes
    happens there, and comes back to it."""
    ports = Ports(world, world.clock, random.Random(seed), recorder)
    engine = assemble(configured.config, configured.profiles, configured.registry, ports, records=records)
    world.post, world.profiles = engine.inbox.post, engine.profiles
    for plugin in configured.plugins():
        for need in plugin.needs:
            if need.resource.type is Unstructured:
                world.custom[need.resource.kind, need.resource.api_version] = need.resource
    return engine
