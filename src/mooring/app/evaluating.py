"""What would the scheduler say: one pod on one cluster, judged by every plugin, offline.

Runs the production runtime and state on the objects that are handed in; nothing is written anywhere. The form
of input and answer is that of the conformance cases: see docs/evaluate.md.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

from mooring.api import decoding
from mooring.api import resources as kinds
from mooring.api.errors import MooringError
from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.app.clock import SystemClock
from mooring.app.configuring import EMPTY, Configuration, configure
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import Nodes
from mooring.framework.ports import Change, ObjectList, WatchEvent
from mooring.framework.queued import QueuedPod
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.attempt import Attempt
from mooring.runtime.building import build_profile
from mooring.runtime.filtering import filter_rows
from mooring.runtime.pre_filtering import run_post_filter, run_pre_filter
from mooring.runtime.profile import Profile
from mooring.runtime.reuse.signatures import Signature, Signer
from mooring.runtime.scoring import Scoring, run_pre_score, run_scores
from mooring.scheduler.assembly import Ports, assemble
from mooring.scheduler.choosing import NO_FIT, NodeChooser
from mooring.scheduler.engine import Engine

INPUTS: dict[str, Resource] = {
    "namespaces": kinds.NAMESPACES,
    "nodes": kinds.NODES,
    "services": kinds.SERVICES,
    "replicationControllers": kinds.REPLICATION_CONTROLLERS,
    "replicaSets": kinds.REPLICA_SETS,
    "statefulSets": kinds.STATEFUL_SETS,
    "storageClasses": kinds.STORAGE_CLASSES,
    "pvs": kinds.PERSISTENT_VOLUMES,
    "pvcs": kinds.PERSISTENT_VOLUME_CLAIMS,
    "csiNodes": kinds.CSI_NODES,
    "csiDrivers": kinds.CSI_DRIVERS,
    "csiStorageCapacities": kinds.CSI_STORAGE_CAPACITIES,
    "volumeAttachments": kinds.VOLUME_ATTACHMENTS,
    "pdbs": kinds.POD_DISRUPTION_BUDGETS,
    "priorityClasses": kinds.PRIORITY_CLASSES,
    "pods": kinds.PODS,
}
"""Key of the input → what it lists, in the order in which it is loaded."""

NOT_JUDGED = ("SchedulingGates", "DynamicResources")
"""Left out of the whole profile: they say nothing about nodes here."""
ALONE = ("PrioritySort", "DefaultBinder")
"""What a profile needs beside the one plugin that is asked."""
WITHOUT_NODES = (*NOT_JUDGED, *ALONE, "DefaultPreemption")


def evaluate(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for one case; a case that cannot be read gives an `error`."""
    name = case.get("id")
    try:
        world = World(case.get("input", {key: value for key, value in case.items() if key != "id"}))
        return {"id": name, "plugins": world.by_plugin(), **world.whole_profile()}
    except (MooringError, BadCase) as error:
        return {"id": name, "error": str(error)}
    except Exception as error:
        # One case must not end the others, whatever is in it.
        return {"id": name, "error": f"{type(error).__name__}: {error}"}


class BadCase(ValueError):
    """A case that does not have the form of one."""


class World:
    """A cluster in memory with one pod that waits."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        _check_form(data)
        self._args = json.dumps(data.get("args") or {}, sort_keys=True)
        self.pod = _read(kinds.PODS, data["pod"])
        self.engine = _engine(configuration(self._args, ()))
        for key, resource in INPUTS.items():
            for raw in data.get(key) or ():
                self.put(resource, _read(resource, raw))
        self.engine.drain()
        self._signer = Signer(next(iter(self.engine.profiles.values())))

    def put(self, resource: Resource, obj: Any, old: Any = None) -> None:
        """A change of the cluster, applied with the next `drain` of the engine."""
        self.engine.inbox.post(Change(resource, old, obj, initial=True))

    def signature(self, pod: Pod) -> Signature:
        """What the plugins of the first profile read of a pod."""
        return self._signer.signature(pod)

    @property
    def nodes(self) -> Nodes:
        return self.engine.services.nodes()

    def by_plugin(self) -> dict[str, Any]:
        """Each plugin alone, as if the others did not exist."""
        found = {}
        for name in default_weights():
            if name in WITHOUT_NODES or name not in configuration("{}", ()).registry:
                continue
            alone = configuration(self._args, (name,))
            profile = build_profile(
                alone.profiles[0], alone.registry, self.engine.services, self.engine.tasks
            )
            verdict = self._one_plugin(profile, name)
            if verdict:
                found[name] = verdict
        return found

    def _one_plugin(self, profile: Profile, name: str) -> dict[str, Any]:
        state, every = CycleState(), self.nodes.columns.every_row()
        pre = run_pre_filter(profile, state, self.pod, self.nodes)
        if not pre.status.is_success:
            return {"preFilter": _plain(pre.status)}
        verdict: dict[str, Any] = {}
        ok = every.alive.copy()
        if pre.node_names is not None:
            ok &= every.nodes.named(*pre.node_names)
            verdict["preFilterNodes"] = sorted(pre.node_names)
        statuses = NodeStatuses(self.nodes)
        status = filter_rows(profile.filter, state, self.pod, every, statuses, ok)
        if not status.is_success:
            return {"error": status.message}
        if len(statuses):
            verdict["filter"] = {node: _plain(refusal) for node, refusal in statuses}
        return verdict | self._score_alone(profile, state, name)

    def _score_alone(self, profile: Profile, state: CycleState, name: str) -> dict[str, Any]:
        if not profile.score or not len(self.nodes):
            return {}
        status = run_pre_score(profile.pre_score, state, self.pod, lambda: self.nodes)
        if not status.is_success:
            return {"preScore": _plain(status)}
        if name in state.skip_score:
            return {}
        every = self.nodes.columns.every_row()
        board, status = run_scores(profile, Scoring(state, self.pod, every, every.alive))
        if not status.is_success:
            return {"error": status.message}
        return {"score": _by_name(self.nodes, board.totals)}

    def whole_profile(self, chooser: NodeChooser | None = None) -> dict[str, Any]:
        """All plugins together: the feasible nodes with their totals, or what preemption would do."""
        profile = next(iter(self.engine.profiles.values()))
        info = QueuedPod(self.pod, 0.0, signature=self.signature(self.pod))
        attempt = Attempt(info, profile, self.nodes)
        status = asyncio.run((chooser or NodeChooser()).choose(attempt)) if len(self.nodes) else NO_FIT
        if status.code is Code.ERROR:
            return {"error": status.message}
        feasible = attempt.every.dense(attempt.ok)
        answer: dict[str, Any] = {"feasible": sorted(feasible.names), "total": {}}
        if len(feasible):
            answer["total"] = self._totals(attempt, feasible)
        elif self.pod.priority > 0:
            answer["preemption"] = asyncio.run(self._preempt(profile, attempt.state, attempt.statuses))
        return answer

    def _totals(self, attempt: Attempt, feasible: Nodes) -> dict[str, int]:
        """A single feasible node is taken without scoring; here its total is of interest all the same."""
        board, status = attempt.board, SUCCESS
        if board is None:
            status = run_pre_score(attempt.profile.pre_score, attempt.state, self.pod, lambda: feasible)
        if board is None and status.is_success:
            scoring = Scoring(attempt.state, self.pod, attempt.every, attempt.ok)
            board, status = run_scores(attempt.profile, scoring)
        if board is None or not status.is_success:
            raise ValueError(status.message)
        return _by_name(feasible, board.totals)

    async def _preempt(self, profile: Profile, state: CycleState, statuses: NodeStatuses) -> dict[str, Any]:
        result, status = await run_post_filter(profile, state, self.pod, statuses)
        await self.engine.tasks.stop()
        answer = {"code": status.code.label, "node": "", "victims": []}
        if status.reasons:
            answer["reasons"] = list(status.reasons)
        if result is not None:
            answer |= {"node": result.nominated_node or "", "victims": sorted(v.name for v in result.victims)}
        return answer


def _check_form(data: Any) -> None:
    """Raise a BadCase that names what is wrong with the input."""
    if not isinstance(data, Mapping):
        raise BadCase(f"input: expected an object, got {_kind(data)}")
    unknown = sorted(set(data) - set(INPUTS) - {"pod", "args"})
    if unknown:
        raise BadCase(f"input.{unknown[0]}: unknown; known are {', '.join([*INPUTS, 'pod', 'args'])}")
    if not isinstance(data.get("pod"), Mapping):
        raise BadCase(
            f"input.pod: the incoming pod is missing: expected an object, got {_kind(data.get('pod'))}"
        )
    if not isinstance(data.get("args") or {}, Mapping):
        raise BadCase(f"input.args: expected an object of plugin names, got {_kind(data['args'])}")
    for key in INPUTS:
        if not isinstance(data.get(key) or [], list):
            raise BadCase(f"input.{key}: expected a list of objects, got {_kind(data[key])}")


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__


def _plain(status: Status) -> dict[str, Any]:
    return {"code": status.code.label, "reasons": list(status.reasons)}


def _by_name(nodes: Nodes, scores: Any) -> dict[str, int]:
    return dict(zip(nodes.names, scores[nodes.rows].tolist(), strict=True))


def _read(resource: Resource, raw: Any) -> Any:
    obj = decoding.convert(resource, raw)
    decoding.validate(obj)
    return obj


@functools.lru_cache(maxsize=512)
def configuration(args: str, only: tuple[str, ...]) -> Configuration:
    """The default profile with these plugin arguments (JSON), or a profile of a few plugins alone."""
    disabled: list[dict[str, Any]] = [{"name": name} for name in NOT_JUDGED]
    enabled: list[dict[str, Any]] = []
    if only:
        weights = default_weights()
        disabled = [{"name": "*"}]
        enabled = [{"name": name, "weight": weights[name]} for name in (ALONE[0], *only, ALONE[1])]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": disabled, "enabled": enabled}},
        "pluginConfig": [
            {"name": name, "args": given}
            for name, given in json.loads(args).items()
            if not only or name in only
        ],
    }
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return configure(json.dumps({**header, "profiles": [profile]}), discover=False)


@functools.lru_cache(maxsize=1)
def default_weights() -> dict[str, int]:
    """The default plugins in order, with their weights."""
    profile = configure(EMPTY, discover=False).config.profiles[0]
    return {plugin.name: plugin.weight for plugin in profile.plugins.multi_point.enabled}


def _engine(configured: Configuration) -> Engine:
    ports = Ports(NoApi(), SystemClock(), random.Random(0), NoEvents())
    return assemble(configured.config, configured.profiles, configured.registry, ports)


class NoEvents:
    """An event sink that keeps nothing."""

    def event(self, regarding: Any, **_: Any) -> None:
        pass


class NoApi:
    """An API server on which every write succeeds and changes nothing."""

    async def list(self, resource: Resource, **_: Any) -> ObjectList:
        return ObjectList((), "0")

    async def watch(self, resource: Resource, **_: Any) -> AsyncIterator[WatchEvent]:
        return
        yield

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return None

    async def create(self, resource: Resource, obj: Any, **_: Any) -> Any:
        return obj

    async def replace(self, resource: Resource, obj: Any, **_: Any) -> Any:
        return obj

    async def patch(self, resource: Resource, name: str, patch: Any, **_: Any) -> Any:
        return None

    async def delete(self, resource: Resource, name: str, **_: Any) -> None:
        return None

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        return None
