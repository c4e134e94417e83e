"""Evaluate pods on clusters in memory: the answer of every plugin, the feasible nodes, the victims.

The form of a case and of its answer is that of the conformance cases: see docs/evaluate.md. The runtime and
state are those of the scheduler; nothing is written anywhere.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from moorage.api import decoding
from moorage.api import resources as kinds
from moorage.api.errors import MoorageError
from moorage.api.failures import failure_text, is_interruption
from moorage.api.pod import Pod
from moorage.api.pod_defaults import with_decoding_defaults
from moorage.api.resources import Resource
from moorage.api.versions import Behaviour
from moorage.app.configuration import Configuration, configure
from moorage.app.offline import question_engine
from moorage.config import PluginConfig
from moorage.config.plugin_args import ArgsReader
from moorage.config.types import API_VERSION, KIND
from moorage.explain.judging import Judge
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Change, Clock
from moorage.framework.status import Code, Status
from moorage.runtime import questions
from moorage.runtime.attempt import Attempt
from moorage.runtime.reuse.signatures import Signature, Signer
from moorage.scheduler.choosing import NO_FIT, NodeChooser
from moorage.snapshots.cluster import ClusterObjects
from moorage.snapshots.files import KEYS

NOT_JUDGED = ("SchedulingGates", "DynamicResources")
"""Plugins that the default profile of an evaluation leaves out: they say nothing about nodes here."""


def evaluate(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of the default profile for one case."""
    return Evaluator()(case)


class Evaluator:
    """Evaluates cases by one profile, each on the cluster that it contains, or all on one live cluster."""

    def __init__(self, configured: Configuration | None = None, live: ClusterObjects | None = None) -> None:
        self._configured = configured
        self._live = live
        self._last: EvaluatedCase | None = None

    def __call__(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer for one case. A case that cannot be read has an `error` instead."""
        name = case.get("id")
        try:
            read = self._read(case.get("input", {key: case[key] for key in case if key != "id"}))
            return {"id": name, "plugins": read.by_plugin(), **read.whole_profile()}
        except BadArgs as error:
            # No profile can be built, neither of all plugins (`*`) nor of these alone.
            refused = {plugin: {"error": str(error)} for plugin in ("*", *error.plugins)}
            return {"id": name, "plugins": refused, "error": str(error)}
        except (MoorageError, BadCase) as error:
            return {"id": name, "error": str(error)}
        except BaseException as error:
            if is_interruption(error):
                raise
            # One case must not end the others, whatever is in it.
            return {"id": name, "error": f"{failure_text(error)}"}

    def _read(self, data: Mapping[str, Any]) -> EvaluatedCase:
        """Load a live cluster once, and again only if other arguments build other plugins."""
        if self._live is None:
            return EvaluatedCase(data, self._configured)
        _check_form(data, ())
        if self._last is None or self._last.args != (data.get("args") or {}):
            self._last = EvaluatedCase(data, self._configured, self._live)
        self._last.pod = _read(kinds.PODS, data["pod"], self._last.behaviour)
        return self._last


class BadCase(ValueError):
    """A case with a wrong form."""


class BadArgs(BadCase):
    """Arguments of a plugin that it refuses."""

    def __init__(self, plugins: Collection[str], message: str) -> None:
        super().__init__(message)
        self.plugins = plugins


class EvaluatedCase:
    """The cluster of a case in memory, and its incoming pod."""

    def __init__(
        self,
        data: Mapping[str, Any],
        configured: Configuration | None = None,
        live: ClusterObjects | None = None,
        clock: Clock | None = None,
        custom: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """`custom` holds further objects by plural name, of kinds that plugins of the configuration need."""
        _check_form(data)
        self.args = data.get("args") or {}
        configured = with_args(configured or default_configuration(), self.args)
        self.behaviour = configured.behaviour
        self.pod = _read(kinds.PODS, data["pod"], self.behaviour)
        objects = (*(live.changes() if live is not None else ()), *case_objects(configured, data, custom))
        self.engine = question_engine(configured, objects, clock=clock)
        self.profile = next(iter(self.engine.profiles.values()))
        self._judge = Judge(self.engine, self.profile)
        self._signer = Signer(self.profile)

    def put(self, resource: Resource, obj: Any, old: Any = None) -> None:
        """Change the cluster with the next `drain` of the engine."""
        self.engine.inbox.post(Change(resource, old, obj, initial=True))

    def signature(self, pod: Pod) -> Signature:
        """Return what the plugins of the first profile read of a pod."""
        return self._signer.signature(pod)

    @property
    def nodes(self) -> Nodes:
        return self._judge.nodes

    def by_plugin(self) -> dict[str, Any]:
        """Return what each plugin answers alone, as if the others did not exist."""
        profile = self.profile
        points = (profile.pre_filter, profile.filter, profile.pre_score, profile.score)
        names = dict.fromkeys(plugin.name for plugins in points for plugin in plugins)
        answers = {name: self.one_plugin(name) for name in names}
        return {name: answer for name, answer in answers.items() if answer}

    def one_plugin(self, name: str, *, raw: bool = False) -> dict[str, Any]:
        """Return what one plugin answers; `raw` adds its scores before they are normalised."""
        state = CycleState()
        verdicts = questions.ask_each(self.profile, state, self.pod, self.nodes, (name,))
        answer: dict[str, Any] = {}
        for verdict in verdicts:
            pre = verdict.pre
            if not pre.status.is_success:
                return {"preFilter": _plain(pre.status)}
            if verdict.error:
                return {"error": verdict.error}
            if pre.node_names is not None:
                answer["preFilterNodes"] = sorted(pre.node_names)
            refused = {
                node: _plain(status)
                for node, status in verdict.statuses
                if pre.node_names is None or node in pre.node_names
            }
            answer |= {"filter": refused} if refused else {}
        board, before, status = questions.score_alone(self.profile, name, state, self.pod, self.nodes)
        if not before.is_success:
            return answer | {"preScore": _plain(before)}
        if not status.is_success:
            return answer | {"error": status.message}
        if board is not None:
            answer["score"] = _by_name(self.nodes, board.totals)
            if raw:
                scores = np.broadcast_to(board.columns[0].raw, board.totals.shape)
                answer["raw"] = _by_name(self.nodes, scores)
        return answer

    def whole_profile(self, chooser: NodeChooser | None = None) -> dict[str, Any]:
        """Return what all plugins answer together: the feasible nodes with their totals, or what preemption
        would do."""
        info = QueuedPod(self.pod, 0.0, signature=self.signature(self.pod))
        attempt = Attempt(info, self.profile, self.nodes)
        status = asyncio.run((chooser or NodeChooser()).choose(attempt)) if len(self.nodes) else NO_FIT
        failed = status.code is Code.ERROR
        if failed and not attempt.feasible:
            return {"error": status.message}
        feasible = attempt.every.dense(attempt.ok)
        answer: dict[str, Any] = {"feasible": sorted(feasible.names), "total": {}}
        if failed:  # scoring failed: the nodes are feasible, and the attempt ends without one
            return answer | {"error": status.message}
        if len(feasible):
            board, status = questions.score_feasible(attempt)
            if board is None:  # the nodes are feasible, but the attempt fails
                return answer | {"error": status.message}
            answer["total"] = _by_name(feasible, board.totals)
        elif self.pod.priority > 0:
            answer["preemption"] = self._preempt(attempt)
        return answer

    def preemption(self) -> dict[str, Any]:
        """Return the feasible nodes, or what preemption does for a pod of any priority, with the victims by
        namespace and name."""
        # A nominated node that is feasible would be taken before any other is filtered.
        status = msgspec.structs.replace(self.pod.status, nominated_node_name="")
        attempt, chosen = asyncio.run(self._judge.choose(msgspec.structs.replace(self.pod, status=status)))
        if chosen.code is Code.ERROR:
            return {"error": chosen.message}
        if names := sorted(attempt.every.dense(attempt.ok).names):
            return {"feasible": names}
        attempt.pod = self.pod
        answer = self._preempt(attempt, attrgetter("key"))
        return {"preemption": {key: value for key, value in answer.items() if value}}

    def _preempt(self, attempt: Attempt, name: Callable[[Pod], str] = attrgetter("name")) -> dict[str, Any]:
        result, status = asyncio.run(self._judge.preempt(attempt))
        answer = {"code": status.code.label, "node": "", "victims": []}
        if status.reasons and not status.is_success:
            answer["reasons"] = list(status.reasons)
        if result is not None:
            answer |= {"node": result.nominated_node or "", "victims": sorted(map(name, result.victims))}
        return answer


def case_objects(
    configured: Configuration, data: Mapping[str, Any], custom: Mapping[str, Sequence[Any]] | None = None
) -> Iterator[Change]:
    """Read the objects of a case, and those of `custom` whose kinds a plugin of the configuration needs."""
    lists = {resource: data.get(key) for key, resource in KEYS.items()}
    for resource in {need.resource for cls in configured.plugins() for need in cls.needs}:
        lists[resource] = lists.get(resource) or (custom or {}).get(resource.plural)
    for resource, objects in lists.items():
        for raw in objects or ():
            yield Change(resource, None, _read(resource, raw, configured.behaviour), initial=True)


def _check_form(data: Any, lists: Collection[str] = tuple(KEYS)) -> None:
    """Raise a BadCase that names what is wrong with the input; `lists` are the lists that it may have."""
    if not isinstance(data, Mapping):
        raise BadCase(f"input: expected an object, got {_kind(data)}")
    unknown = sorted(set(data) - {*lists, "pod", "args"})
    if unknown and unknown[0] in KEYS:
        raise BadCase(f"input.{unknown[0]}: the cluster is that of the API server; leave this out")
    if unknown:
        raise BadCase(f"input.{unknown[0]}: unknown; known are {', '.join([*lists, 'pod', 'args'])}")
    if not isinstance(data.get("pod"), Mapping):
        raise BadCase(f"input.pod: the incoming pod is missing: expected an object, got {_kind(data.get('pod'))}")
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


def _read(resource: Resource, raw: Any, behaviour: Behaviour) -> Any:
    obj = decoding.convert(resource, raw)
    decoding.validate(obj)
    return with_decoding_defaults(obj, behaviour) if isinstance(obj, Pod) else obj


@functools.lru_cache(maxsize=8)
def default_configuration(emulated_version: str = "") -> Configuration:
    """Return the default profile without the plugins that say nothing about nodes."""
    disabled = [{"name": name} for name in NOT_JUDGED]
    header = {"apiVersion": API_VERSION, "kind": KIND}
    profiles = [{"plugins": {"multiPoint": {"disabled": disabled}}}]
    text = json.dumps({**header, "profiles": profiles})
    return configure(text, discover=False, emulated_version=emulated_version)


def with_args(configured: Configuration, given: Mapping[str, Any]) -> Configuration:
    """Return the configuration with other arguments for some plugins of its first profile."""
    if not given:
        return configured
    profile, known = configured.profiles[0], configured.profiles[0].plugin_names
    if unknown := sorted(set(given) - set(known)):
        raise BadCase(
            f"input.args.{unknown[0]}: profile {profile.scheduler_name!r} has no plugin of this name; "
            f"it has {', '.join(sorted(known))}"
        )
    reader = ArgsReader(API_VERSION.rpartition("/")[2], configured.registry.args_types(), configured.gates)
    args, refused = dict(profile.plugin_args), []
    for name, written in given.items():
        known_problems = len(reader.problems)
        args[name] = reader.read_one(PluginConfig(name=name, args=written), f"input.args.{name}")
        if len(reader.problems) > known_problems:
            refused.append(name)
    if reader.problems:
        raise BadArgs(refused, "; ".join(map(str, reader.problems)))
    changed = msgspec.structs.replace(profile, plugin_args=args)
    return dataclasses.replace(configured, profiles=(changed, *configured.profiles[1:]))
