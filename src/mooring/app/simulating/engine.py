"""An engine whose cluster is a world in memory, in virtual time: for simulations and what-if."""

from __future__ import annotations

import random

from mooring.api.resources import Unstructured
from mooring.app.configuring import Configuration
from mooring.framework.ports import EventRecorder
from mooring.scheduler.assembly import assemble
from mooring.scheduler.engine import Engine
from mooring.scheduler.generation import Ports
from mooring.scheduler.records import RecordRing
from mooring.sim.world import World


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
