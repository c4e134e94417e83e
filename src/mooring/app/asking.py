"""A cluster that was read, loaded into an engine in memory, for questions about its pods."""

from __future__ import annotations

from mooring.api.errors import MooringError
from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.app.configuring import Configuration
from mooring.app.evaluating import looking_at_all_nodes
from mooring.app.live_cluster import LiveCluster
from mooring.app.offline import offline_engine
from mooring.explain.judging import Judge
from mooring.scheduler.engine import Engine


class LoadedCluster:
    """An engine that holds the objects of a cluster and schedules nothing by itself."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self.engine = engine
        self.namespace = namespace

    @classmethod
    def load(cls, cluster: LiveCluster, configured: Configuration) -> LoadedCluster:
        """By all profiles of the configuration, which look at all nodes."""
        engine = offline_engine(looking_at_all_nodes(configured))
        for change in cluster.changes():
            engine.inbox.post(change)
        engine.drain()
        return cls(engine, cluster.namespace)

    def judge(self, pod: Pod, profile: str = "") -> Judge:
        """By the profile of this name, by the one that the pod asks for, or by the first: a cluster that has
        never heard of a profile is asked about all the same."""
        profiles = self.engine.profiles
        name = profile or (pod.scheduler_name if pod.scheduler_name in profiles else next(iter(profiles)))
        if name not in profiles:
            raise MooringError(f"there is no profile {name!r}; there are {', '.join(profiles)}")
        return Judge(self.engine, profiles[name])

    def pod(self, name: str, namespace: str) -> Pod:
        """The pod of this name; a MooringError says which names are near it."""
        found: Pod | None = self.engine.stores.lister(PODS).get(name, namespace)
        if found is not None:
            return found
        near = [pod.key for pod in self.engine.stores.lister(PODS).list() if pod.name == name][:3]
        hint = f"; there is {' and '.join(near)}: name its namespace with -n" if near else ""
        raise MooringError(f"there is no pod {name!r} in the namespace {namespace!r}{hint}")
