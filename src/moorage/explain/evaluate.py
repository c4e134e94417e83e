"""What would the scheduler say: one pod on one cluster, judged by every plugin, offline.

Runs the production runtime and state on the objects that are handed in; nothing is written anywhere. The form
of input and answer is that of the conformance cases: see docs/evaluate.md.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from moorage.api import decoding
from moorage.api import resources as kinds
from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.app.configuration import Configuration, configure
from moorage.app.offline import offline_engine
from moorage.config import PluginConfig
from moorage.config.gates import DEFAULT_GATES
from moorage.config.plugin_args import ArgsReader
from moorage.config.types import API_VERSION, KIND
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Change, Clock
from moorage.framework.status import SUCCESS, Code, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.attempt import Attempt
from moorage.runtime.building import build_profile
from moorage.runtime.filtering import filter_rows
from moorage.runtime.pre_filtering import run_post_filter, run_pre_filter
from moorage.runtime.profile import Profile
from moorage.runtime.reuse.signatures import Signature, Signer
from moorage.runtime.scoring import Scoring, run_pre_score, run_scores
from moorage.scheduler.choosing import NO_FIT, NodeChooser
from moorage.snapshots.cluster import ClusterObjects
from moorage.snapshots.files import KEYS

NOT_JUDGED = ("SchedulingGates", "DynamicResources")
"""Left out of the default profile: they say nothing about nodes here."""
JUDGES = ("preFilter", "filter", "preScore", "score")
"""The points at which a plugin has something to say of nodes."""
NEEDED = ("queueSort", "bind")
"""What a profile needs beside the one plugin that is asked."""


def evaluate(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the default profile for one case."""
    return Evaluator()(case)


class Evaluator:
    """Judges cases by one profile, each on the cluster that it brings, or all on one live cluster."""

    def __init__(self, configured: Configuration | None = None, live: ClusterObjects | None = None) -> None:
        self._configured = configured and looking_at_all_nodes(configured)
        self._live = live
        self._last: World | None = None

    def __call__(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """The answer for one case; a case that cannot be read gives an `error`."""
        name = case.get("id")
        try:
            world = self._world(case.get("input", {key: case[key] for key in case if key != "id"}))
            return {"id": name, "plugins": world.by_plugin(), **world.whole_profile()}
        except (MoorageError, BadCase) as error:
            return {"id": name, "error": str(error)}
        except Exception as error:
            # One case must not end the others, whatever is in it.
            return {"id": name, "error": f"{type(error).__name__}: {error}"}

    def _world(self, data: Mapping[str, Any]) -> World:
        """A live cluster is loaded once, and again only when other arguments build other plugins."""
        if self._live is None:
            return World(data, self._configured)
        _check_form(data, ())
        if self._last is None or self._last.args != (data.get("args") or {}):
            self._last = World(data, self._configured, self._live)
        self._last.pod = _read(kinds.PODS, data["pod"])
        return self._last


class BadCase(ValueError):
    """A case that does not have the form of one."""


class World:
    """A cluster in memory with one pod that waits."""

    def __init__(
        self,
        data: Mapping[str, Any],
        configured: Configuration | None = None,
        live: ClusterObjects | None = None,
        clock: Clock | None = None,
        custom: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """`custom`: further objects by plural name, of kinds that plugins of the configuration need."""
        _check_form(data)
        self.args = data.get("args") or {}
        self.pod = _read(kinds.PODS, data["pod"])
        configured = with_args(configured or default_configuration(), self.args)
        self._resolved, self._registry = configured.profiles[0], configured.registry
        self.engine = offline_engine(configured, clock=clock)
        for change in live.changes() if live is not None else ():
            self.engine.inbox.post(change)
        for key, resource in KEYS.items():
            for raw in data.get(key) or ():
                self.put(resource, _read(resource, raw))
        for resource in {need.resource for cls in configured.plugins() for need in cls.needs}:
            for raw in (custom or {}).get(resource.plural) or ():
                self.put(resource, _read(resource, raw))
        self.engine.drain()
        self._signer = Signer(next(iter(self.engine.profiles.values())))
        self._alone: dict[str, Profile] = {}

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
        asked = dict.fromkeys(ref.name for point in JUDGES for ref in self._resolved.points[point])
        verdicts = {name: self.one_plugin(self.alone(name), name) for name in asked}
        return {name: verdict for name, verdict in verdicts.items() if verdict}

    def alone(self, name: str) -> Profile:
        """The profile without all plugins but this one and what every profile needs."""
        if name not in self._alone:
            points = {
                point: refs if point in NEEDED else tuple(ref for ref in refs if ref.name == name)
                for point, refs in self._resolved.points.items()
            }
            resolved = msgspec.structs.replace(self._resolved, points=points)
            services, tasks = self.engine.services, self.engine.tasks
            self._alone[name] = build_profile(resolved, self._registry, services, tasks)
        return self._alone[name]

    def one_plugin(self, profile: Profile, name: str, *, raw: bool = False) -> dict[str, Any]:
        """What the one plugin says that judges in this profile; `raw`: also its scores as they are before
        they are normalised."""
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
        return verdict | self._score_alone(profile, state, name, raw)

    def _score_alone(self, profile: Profile, state: CycleState, name: str, raw: bool) -> dict[str, Any]:
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
        scores = {"score": _by_name(self.nodes, board.totals)}
        if raw:
            found = np.broadcast_to(board.columns[0].raw, board.totals.shape)
            scores["raw"] = _by_name(self.nodes, found)
        return scores

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

    def preemption(self) -> dict[str, Any]:
        """All plugins together: the feasible nodes, or what preemption does, whatever the pod's priority;
        victims by namespace and name."""
        profile = next(iter(self.engine.profiles.values()))
        # A nominated node that is feasible would be taken before any other is looked at.
        status = msgspec.structs.replace(self.pod.status, nominated_node_name="")
        pod = msgspec.structs.replace(self.pod, status=status)
        attempt = Attempt(QueuedPod(pod, 0.0), profile, self.nodes)
        chosen = asyncio.run(NodeChooser().choose(attempt))
        if chosen.code is Code.ERROR:
            return {"error": chosen.message}
        if names := sorted(attempt.every.dense(attempt.ok).names):
            return {"feasible": names}
        found = asyncio.run(self._preempt(profile, attempt.state, attempt.statuses, attrgetter("key")))
        return {"preemption": {key: value for key, value in found.items() if value}}

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

    async def _preempt(
        self,
        profile: Profile,
        state: CycleState,
        statuses: NodeStatuses,
        name: Callable[[Pod], str] = attrgetter("name"),
    ) -> dict[str, Any]:
        result, status = await run_post_filter(profile, state, self.pod, statuses)
        await self.engine.tasks.stop()
        answer = {"code": status.code.label, "node": "", "victims": []}
        if status.reasons:
            answer["reasons"] = list(status.reasons)
        if result is not None:
            answer |= {"node": result.nominated_node or "", "victims": sorted(map(name, result.victims))}
        return answer


def _check_form(data: Any, lists: Collection[str] = tuple(KEYS)) -> None:
    """Raise a BadCase that names what is wrong with the input, which may have these lists of objects."""
    if not isinstance(data, Mapping):
        raise BadCase(f"input: expected an object, got {_kind(data)}")
    unknown = sorted(set(data) - {*lists, "pod", "args"})
    if unknown and unknown[0] in KEYS:
        raise BadCase(f"input.{unknown[0]}: the cluster is that of the API server; leave this out")
    if unknown:
        raise BadCase(f"input.{unknown[0]}: unknown; known are {', '.join([*lists, 'pod', 'args'])}")
    if not isinstance(data.get("pod"), Mapping):
        raise BadCase(
            f"input.pod: the incoming pod is missing: expected an object, got {_kind(data.get('pod'))}"
        )
    if not isinstance(data.get("args") or {}, Mapping):
        raise BadCase(f"input.args: expected an object of plugin names, got {_kind(data['args'])}")
    for key in lists:
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


@functools.lru_cache(maxsize=1)
def default_configuration() -> Configuration:
    """The default profile, as far as it judges nodes."""
    disabled = [{"name": name} for name in NOT_JUDGED]
    header = {"apiVersion": API_VERSION, "kind": KIND}
    profiles = [{"plugins": {"multiPoint": {"disabled": disabled}}}]
    return configure(json.dumps({**header, "profiles": profiles}), discover=False)


def looking_at_all_nodes(configured: Configuration) -> Configuration:
    """Without sampling: every node is judged."""
    profiles = (
        msgspec.structs.replace(profile, percentage_of_nodes_to_score=100) for profile in configured.profiles
    )
    return dataclasses.replace(configured, profiles=tuple(profiles))


def with_args(configured: Configuration, given: Mapping[str, Any]) -> Configuration:
    """The configuration with other arguments for some plugins of its first profile."""
    if not given:
        return configured
    profile, known = configured.profiles[0], configured.profiles[0].plugin_names
    if unknown := sorted(set(given) - set(known)):
        raise BadCase(
            f"input.args.{unknown[0]}: profile {profile.scheduler_name!r} has no plugin of this name; "
            f"it has {', '.join(sorted(known))}"
        )
    reader = ArgsReader(API_VERSION.rpartition("/")[2], configured.registry.args_types(), DEFAULT_GATES)
    args = dict(profile.plugin_args)
    for name, written in given.items():
        args[name] = reader.read_one(PluginConfig(name=name, args=written), f"input.args.{name}")
    if reader.problems:
        raise BadCase("; ".join(map(str, reader.problems)))
    changed = msgspec.structs.replace(profile, plugin_args=args)
    return dataclasses.replace(configured, profiles=(changed, *configured.profiles[1:]))
