"""A cluster for tests: the object store, the real scheduler and virtual time, driven from plain functions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from moorage import snapshots
from moorage.api import decoding
from moorage.api.core import Event
from moorage.api.errors import NotFound
from moorage.api.meta import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, NODES, PODS, Resource, Unstructured, by_kind
from moorage.app.offline import question_engine
from moorage.app.scheduler import Scheduler
from moorage.explain.explanation import Explanation, explain
from moorage.explain.judging import Judge, find_pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.optional import Detail, ExplainingPlugin
from moorage.framework.points import Plugin, PreFilterPlugin
from moorage.framework.ports import PatchType
from moorage.run.hook_limit import HOOK_LIMIT, HookLimit, NeverReturns
from moorage.runtime.record import DecisionRecord
from moorage.sim.loop import VirtualClock, VirtualLoop, finish
from moorage.snapshots.cluster import list_cluster
from moorage.store.faults import Faults
from moorage.store.objects import Stored, copy_json
from moorage.store.store import Store
from moorage.testing.checks import VerifyingChooser, refuse_circles
from moorage.testing.failures import LoggedFailures, RememberingClient

T = TypeVar("T")

AnObject = Object | Unstructured | dict[str, Any]
"""An object for `add` and `delete`."""


class Cluster:
    """An object store with a scheduler. Virtual time passes only inside calls.

    `config` is a Path, a YAML or JSON text, a mapping with the structure of the file, or None for the default
    profile, as for `moorage.Scheduler`. `seed` fixes the order of simultaneous events, and is
    printed when a test fails. With `verify_reuse` every reused answer is compared with a fresh one. Use the
    cluster as a context manager, or call `close`.

    An exception in the background work of a plugin (`run`, `handle.spawn`), in `unreserve`, `post_bind` or a callback
    is raised by the next `settle` or by `close`, unless `allow_background_failures` is set. `close` fails the
    test if a plugin has changed an object of the cluster. The test fails with an AssertionError that
    names the plugin if a hook takes longer than `hook_limit` seconds of real time (None: no limit), or if
    a pod is tried in a loop while no virtual time passes."""

    def __init__(
        self,
        *,
        config: Path | str | Mapping[str, Any] | None = None,
        plugins: Iterable[type[Plugin]] = (),
        seed: int = 0,
        discover: bool = False,
        flush_after: float | None = 300.0,
        start: bool = True,
        verify_reuse: bool = False,
        allow_background_failures: bool = False,
        hook_limit: float | None = HOOK_LIMIT,
    ) -> None:
        self.seed = seed
        self._verify_reuse = verify_reuse
        self.loop = VirtualLoop(seed)
        self.clock = VirtualClock(self.loop)
        self.hook_limit = hook_limit
        self.loop.on_standstill = self._refuse_circles
        self.random = random.Random(seed)
        self.store = Store(self.clock.wall, random.Random(seed + 1))
        self.faults = Faults(random.Random(seed + 2))
        """The faults of the scheduler's API calls; none by default."""
        self.client = RememberingClient(self.store, self.clock, self.faults)
        """The API client: `cluster.run(cluster.client.get(QUOTAS, "team"))`."""
        self._options: dict[str, Any] = {
            "config": config, "plugins": tuple(plugins), "discover": discover, "flush_after": flush_after,
            "probe_server": False,  # its store never loses changes
        }  # fmt: skip
        self._allows_failures = allow_background_failures
        self._failed: list[tuple[str, BaseException]] = []
        """Failures of plugins that failed no attempt and are not reported yet, with what failed."""
        self._closed = False
        try:
            self.scheduler = self._make_scheduler()
            if start:
                self.start()
        except BaseException:
            finish(self.loop)
            self.loop.close()
            raise

    def _make_scheduler(self) -> Scheduler:
        made = Scheduler(self.client, clock=self.clock, random=self.random, instance="test", **self._options)
        if self._verify_reuse:
            made.engine.cycle.chooser = VerifyingChooser(made.engine.cycle.chooser.reuse)
        made.on_end = lambda text: self._failed.append(("background work of 'the scheduler'", RuntimeError(text)))
        return made

    def start(self) -> None:
        """Start the scheduler. With `start=False` in the constructor, objects can be added first."""
        if not self._allows_failures:
            tasks = self.scheduler.engine.tasks
            tasks.on_failure = lambda owner, error: self._failed.append((f"background work of {owner!r}", error))
        self.run(self.scheduler.start())

    def restart(self) -> None:
        """Stop the scheduler, and start a new one on the same cluster."""
        self.run(self.scheduler.stop())
        self.scheduler = self._make_scheduler()
        self.start()

    def reload(self, config: Path | str | Mapping[str, Any] | None, plugins: Iterable[type[Plugin]] = ()) -> None:
        """Load another configuration, as when its file has changed. If it cannot be used, a MoorageError
        says why, and the current configuration stays."""
        self.run(self.scheduler.reload(config, plugins))

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, together with everything else that is running."""
        try:
            with HookLimit(self.loop, self.hook_limit), LoggedFailures(self.loop, self._note_failure):
                return self.loop.run_until_complete(coro)
        except NeverReturns as error:
            allow = "Cluster(hook_limit=…) allows more"
            raise AssertionError(f"{error} (seed {self.seed}; the stack above shows where; {allow})") from error

    def _note_failure(self, what: str, error: BaseException) -> None:
        if not self._allows_failures:
            self._failed.append((what, error))

    def _refuse_circles(self) -> None:
        refuse_circles(self.scheduler.records, self.clock)

    def settle(self, seconds: float = 1.0) -> None:
        """Let `seconds` of virtual time pass, and wait until nothing more happens at that time."""
        self.run(asyncio.sleep(seconds))
        self._report_failures()
        chooser = self.scheduler.engine.cycle.chooser
        if isinstance(chooser, VerifyingChooser) and chooser.differences:
            raise AssertionError(f"{chooser.differences[0]} (seed {self.seed})")

    def _report_failures(self) -> None:
        if self._failed:
            [(what, error), *more] = self._failed
            self._failed.clear()
            others = f", and {len(more)} more failed" if more else ""
            raise AssertionError(
                f"{what} failed: {type(error).__name__}: {error}{others} "
                f"(seed {self.seed}); if that is what the test is about, set allow_background_failures=True"
            ) from error

    def until(self, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Let time pass until the condition holds. Raises an AssertionError if it does not hold in time."""
        deadline = self.clock.now() + timeout
        while not condition():
            if self.clock.now() >= deadline:
                raise AssertionError(f"not within {timeout:g} virtual seconds (seed {self.seed})")
            self.settle(0.1)

    def add(self, *objects: AnObject | Iterable[AnObject]) -> None:
        """Put objects into the cluster as they are, their status included; iterables are unpacked. An object
        of a custom kind is a dictionary with `apiVersion` and `kind`, or an `Unstructured`; without a
        namespace it goes to `default`."""
        for obj in objects:
            if isinstance(obj, Object | Unstructured | dict):
                self.store.load(*self._identified(obj))
            else:
                self.add(*obj)

    def load(self, path: Path | str) -> None:
        """Add the objects of a file of `moorage snapshot`, of all kinds that the plugins of this cluster read."""
        found = snapshots.load(Path(path), self.scheduler.configuration.resources())
        for objects in found.objects.values():
            self.add(objects)

    def delete(self, obj: AnObject, *, grace_period: int | None = 0) -> None:
        """Delete an object. A pod is gone at once, as if its kubelet had stopped it. With a `grace_period`
        (None: the pod's own), it stays terminating until it is deleted again."""
        resource, raw = self._identified(obj)
        name, namespace = raw["metadata"]["name"], raw["metadata"].get("namespace", "")
        self.run(self.client.delete(resource, name, namespace=namespace, grace_period=grace_period))

    def _identified(self, obj: AnObject) -> tuple[Resource, dict[str, Any]]:
        """Return the resource of an object, and a copy of its JSON."""
        if isinstance(obj, Object):
            raw = decoding.to_builtins(obj)
        else:
            raw = copy_json(obj.raw if isinstance(obj, Unstructured) else obj)
        if not (raw.get("metadata") or {}).get("name"):
            raise AssertionError(f"an object of kind {raw.get('kind', '')!r} has no metadata.name")
        kind, api_version = raw.get("kind") or type(obj).__name__, raw.get("apiVersion", "")
        resource = by_kind(kind, api_version or None) or self._declared(kind, api_version)
        if resource.namespaced:
            raw["metadata"].setdefault("namespace", "default")
        return resource, raw

    def _declared(self, kind: str, api_version: str) -> Resource:
        """Return a custom kind that a plugin of this cluster declares in `needs`."""
        for profile in self.scheduler.engine.profiles.values():
            for plugin in profile.plugins.values():
                for need in plugin.needs:
                    if (need.resource.kind, need.resource.api_version) == (kind, api_version):
                        return need.resource
        group, _, version = api_version.rpartition("/")
        raise AssertionError(
            f"no plugin of this cluster declares kind {kind!r} of apiVersion {api_version!r}: add "
            f'Access(custom("{group}", "{version}", "<plural>", "{kind}")) to the `needs` of the plugin that '
            "uses it, and enable that plugin"
        )

    def patch(self, resource: Resource, name: str, patch: dict[str, Any], namespace: str = "", **options: Any) -> Any:
        """Apply a merge patch; use `subresource="status"` for the status."""
        kind = options.pop("patch_type", PatchType.MERGE)
        return self.run(self.client.patch(resource, name, patch, namespace=namespace, patch_type=kind, **options))

    def label_node(self, name: str, **labels: str | None) -> None:
        """Set labels of a node; None removes a label."""
        self.patch(NODES, name, {"metadata": {"labels": labels}})

    def cordon(self, name: str, on: bool = True) -> None:
        """Cordon a node, or uncordon it."""
        self.patch(NODES, name, {"spec": {"unschedulable": on}})

    def pod(self, name: str, namespace: str = "default") -> Pod | None:
        """Return the pod as the API server has it, or None."""
        try:
            return typed(self.store.get(PODS, name, namespace), Pod)
        except NotFound:
            return None

    def node(self, name: str) -> Node:
        """Return the node as the API server has it."""
        return typed(self.store.get(NODES, name), Node)

    def pods(self) -> list[Pod]:
        """Return all pods as the API server has them."""
        return [typed(stored, Pod) for stored in self.store.list(PODS).items]

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Return the node that the pod is bound to; empty while it is pending."""
        return self._existing(name, namespace).spec.node_name

    def _existing(self, name: str, namespace: str) -> Pod:
        pod = self.pod(name, namespace)
        if pod is None:
            raise AssertionError(f"pod {namespace}/{name} does not exist")
        return pod

    def bound(self) -> dict[str, str]:
        """Return the nodes of all bound pods, by pod key."""
        return {pod.key: pod.spec.node_name for pod in self.pods() if pod.spec.node_name}

    def pending(self) -> list[str]:
        """Return the keys of the pods without a node."""
        return [pod.key for pod in self.pods() if not pod.spec.node_name]

    def events(self, name: str = "", reason: str = "") -> list[Event]:
        """Return the events about objects of that name, oldest first."""
        found = [typed(stored, Event) for stored in self.store.list(EVENTS).items]
        return [e for e in found if (not name or e.regarding.name == name) and (not reason or e.reason == reason)]

    def plugin(self, name: str, profile: str = "") -> Any:
        """Return the running instance of a plugin, in the named profile or in the first one that enables it."""
        profiles = self.scheduler.engine.profiles
        chosen = [profiles[profile]] if profile in profiles else [] if profile else list(profiles.values())
        for found in chosen:
            if name in found.plugins:
                return found.plugins[name]
        known = "; ".join(f"{each.name}: {', '.join(each.plugins)}" for each in profiles.values())
        raise AssertionError(f"no plugin {name!r} runs in {profile or 'any profile'}; running are {known}")

    def record(self, name: str, namespace: str = "default") -> DecisionRecord:
        """Return the newest decision record of a pod."""
        record = self.scheduler.records.last(f"{namespace}/{name}")
        if record is None:
            raise AssertionError(f"no attempt for pod {namespace}/{name} is on record")
        return record

    def details(self, plugin: str, name: str, node: str, namespace: str = "default") -> list[Detail]:
        """Run PreFilter and `explain` of a plugin for a pod, and return the details for a node that it refuses."""
        pod, engine = self._existing(name, namespace), self.scheduler.engine
        found, nodes = engine.profiles[pod.scheduler_name].plugins.get(plugin), engine.services.nodes()
        if not isinstance(found, ExplainingPlugin):
            raise AssertionError(f"profile {pod.scheduler_name} has no plugin {plugin} with `explain`")
        row = nodes.columns.row_of(node)
        if row < 0:
            raise AssertionError(f"node {node} does not exist")
        state = CycleState()
        if isinstance(found, PreFilterPlugin):
            found.pre_filter(state, pod, nodes)
        return list(found.explain(state, pod, nodes.columns.view(row)))

    def remedies(self, name: str, namespace: str = "default") -> list[str]:
        """Return the remedies that `moorage explain` shows for a pending pod. Each was tried on a copy of the
        cluster."""
        return [remedy.text for remedy in self._explained(name, namespace).remedies]

    def facts(self, name: str, namespace: str = "default") -> list[str]:
        """Return the facts that `moorage explain` shows about a pending pod, those of plugins among them."""
        return list(self._explained(name, namespace).facts)

    def _explained(self, name: str, namespace: str) -> Explanation:
        configured = self.scheduler.configuration
        kinds = [need.resource for cls in configured.plugins() for need in cls.needs if need.reads]
        engine = question_engine(configured, self.run(list_cluster(self.client, kinds)).changes())
        pod = find_pod(engine, name, namespace)
        return self.run(explain(Judge.of(engine, pod), pod))

    def validate(self) -> None:
        """Raise if the cache or the queue is inconsistent."""
        self.scheduler.engine.cache.validate()
        self.scheduler.engine.queue.pending.validate()

    def close(self) -> None:
        """Stop everything, and raise background failures that were not reported yet."""
        if self._closed:
            return
        self._closed = True
        try:
            self.run(self.scheduler.stop())
        finally:
            finish(self.loop)
            self.loop.close()
        if self.loop.failures:
            raise BaseExceptionGroup(f"background failures (seed {self.seed})", self.loop.failures)
        self._report_failures()
        if changed := self.client.changed():
            raise AssertionError(
                f"a plugin changed {changed[0]}{f', and {len(changed) - 1} more objects' if changed[1:] else ''} "
                f"(seed {self.seed}); objects of the cluster are shared by all plugins: change a copy"
            )

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def typed(stored: Stored, kind: type[T]) -> T:
    obj = stored.typed
    if not isinstance(obj, kind):
        raise AssertionError(f"expected a {kind.__name__}, the store has {obj!r}")
    return obj
