"""What the tests of this folder share: configurations in one line, and looks into a cluster."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from moorage.api.pod import Pod
from moorage.app.scheduler import Scheduler
from moorage.client.informers import InformerSet
from moorage.framework import Plugin
from moorage.framework.ports import Extender
from moorage.queue.pending import Location
from moorage.scheduler.assembly import assemble, needed_resources
from moorage.scheduler.generation import Ports
from moorage.sim.loop import VirtualClock, VirtualLoop
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.testing import Cluster


def config(*names: str, profiles: Iterable[str] = ("default-scheduler",), head: str = "", extra: str = "") -> str:
    """Profiles with PrioritySort, DefaultBinder and these plugins only; `extra` goes into each profile."""
    enabled = ", ".join(f"{{name: {name}}}" for name in ("PrioritySort", *names, "DefaultBinder"))
    text = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{head}\nprofiles:\n"
    for profile in profiles:
        text += f"- schedulerName: {profile}\n"
        text += f'  plugins: {{multiPoint: {{disabled: [{{name: "*"}}], enabled: [{enabled}]}}}}\n'
        text += f"  {extra}\n" if extra else ""
    return text


def built(text: str, plugins: Iterable[type[Plugin]]) -> Scheduler:
    """A scheduler that is built and never started."""
    loop = VirtualLoop(0)
    try:
        clock = VirtualClock(loop)
        client = LocalClient(Store(clock.wall, random.Random(0)), clock)
        return Scheduler(client, config=text, plugins=plugins, clock=clock, discover=False, instance="test")
    finally:
        loop.close()


def the_pod(cluster: Cluster, name: str) -> Pod:
    pod = cluster.pod(name)
    assert pod is not None, f"no pod {name}"
    return pod


def where(cluster: Cluster, name: str) -> Location:
    found = cluster.scheduler.where(the_pod(cluster, name))
    assert found is not None, f"pod {name} is in no place of the queue"
    return found


def place(cluster: Cluster, name: str) -> str:
    """The pod's place in the queue; empty when it has none."""
    found = cluster.scheduler.where(the_pod(cluster, name))
    return found.place if found is not None else ""


def assumed(cluster: Cluster) -> list[str]:
    return [cached.pod.key for cached in cluster.scheduler.engine.cache.assumed()]


def notes(cluster: Cluster, name: str) -> list[str]:
    return [event.note for event in cluster.events(name)]


class ExtendedCluster(Cluster):
    """A cluster whose scheduler has these extenders at its port."""

    def __init__(self, *extenders: Extender, **options: Any) -> None:
        self._extenders = extenders
        super().__init__(**options)

    def _make_scheduler(self) -> Scheduler:
        made = super()._make_scheduler()
        given = made.configuration
        ports = Ports(self.client, self.clock, self.random, made._recorder, extenders=self._extenders)
        flush = self._options["flush_after"]
        made.engine = assemble(given.config, given.profiles, given.registry, ports, flush_after=flush)
        kinds = needed_resources(given.plugins())
        made.informers = InformerSet(self.client, made.engine.inbox.post, self.clock, self.random, kinds)
        return made
