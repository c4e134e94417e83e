"""A cluster that was read, loaded into an engine in memory, for questions about its pods."""

from __future__ import annotations

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.configuration import Configuration
from moorage.app.offline import offline_engine
from moorage.explain.evaluate import looking_at_all_nodes
from moorage.explain.judging import Judge
from moorage.scheduler.engine import Engine
from moorage.snapshots.cluster import ClusterObjects


class LoadedCluster:
    """An engine that holds the objects of a cluster and schedules nothing by itself."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self.engine = engine
        self.namespace = namespace

    @classmethod
    def load(cls, cluster: ClusterObjects, configured: Configuration) -> LoadedCluster:
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
            raise MoorageError(f"there is no profile {name!r}; there are {', '.join(profiles)}")
        return Judge(self.engine, profiles[name])

    def pod(self, name: str, namespace: str) -> Pod:
        """The pod of this name; a MoorageError says which names are near it."""
        found: Pod | None = self.engine.stores.lister(PODS).get(name, namespace)
        if found is not None:
            return found
        near = [pod.key for pod in self.engine.stores.lister(PODS).list() if pod.name == name][:3]
        hint = f"; there is {' and '.join(near)}: name its namespace with -n" if near else ""
        raise MoorageError(f"there is no pod {name!r} in the namespace {namespace!r}{hint}")
