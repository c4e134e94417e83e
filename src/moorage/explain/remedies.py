"""What would make a pod schedulable, found by trying.

The plugins that refuse the nodes with the fewest obstacles propose changes (`ExplainingPlugin.remedies`).
They are applied to the pod, or to the engine's copy of the cluster, and the scheduler is asked again; then
they are taken back. Only proposals that work are shown."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from moorage.api.meta import Object
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.api.resources import Resource, Unstructured
from moorage.explain.commands import change_command, pod_yaml
from moorage.explain.judging import Judge, Judgement
from moorage.explain.other_remedies import other_remedies
from moorage.explain.trying import Remedy, changed, deleted_pods, leaving_nodes, outcome, violation_text
from moorage.framework.nodes import IntArray, NodeView
from moorage.framework.optional import ExplainingPlugin, Proposal
from moorage.runtime.calling import failed
from moorage.runtime.questions import PluginVerdict

MAX_TRIED = 48
SHOWN = 5
MAX_PROPOSALS = 8
"""Proposals of one plugin for one node that are considered."""
_NODES_PER_GROUP = 12
"""Nodes that are refused for the same reasons, the nearest to fitting, for which proposals are made."""
_GROUPS = 24
_POINT = "Remedies"
"""How logs and metrics name a call of `remedies`."""


class Offer(NamedTuple):
    """A proposal, and the plugin that made it."""

    plugin: ExplainingPlugin
    proposal: Proposal


Offers = tuple[Offer, ...]
"""One offer for each plugin that refuses a node."""


async def find_remedies(judge: Judge, judgement: Judgement, shown: int = SHOWN) -> list[Remedy]:
    """Return the remedies that work, the mildest first; none for a pod that has a feasible node."""
    if judgement.feasible or not judgement.verdicts:
        return []
    asking, leaving = _Asking(judgement), leaving_nodes(judge)
    found: list[Remedy] = []
    enough: list[set[str]] = []
    for offers in _combinations(judgement, asking)[:MAX_TRIED]:
        keys = {offer.proposal.key for offer in offers}
        if any(less <= keys for less in enough):
            continue  # a part of it is enough
        remedy = await _try(judge, asking, offers, leaving)
        if remedy is not None:
            found.append(remedy)
            enough.append(keys)
        if len(found) >= shown:
            break
    found += [remedy async for remedy in other_remedies(judge, judgement, leaving)]
    return sorted(found, key=lambda each: each.cost)[:shown]


class _Asking:
    """Asks plugins for proposals. A plugin that raises or proposes nonsense is named in the log and not asked again."""

    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement
        self.broken: set[str] = set()

    @property
    def pod(self) -> Pod:
        return self._judgement.pod

    def offers(self, verdict: PluginVerdict, node: NodeView) -> list[Offer]:
        """Return ways to get past one plugin on one node, the mildest first."""
        plugin = verdict.plugin
        if not isinstance(plugin, ExplainingPlugin) or plugin.name in self.broken:
            return []
        try:
            proposals = plugin.remedies(self._judgement.attempt.state, self.pod, node)
            found = [Offer(plugin, each) for each in itertools.islice(proposals, MAX_PROPOSALS)]
            for offer in found:
                check(offer.proposal)
            return found
        except BaseException as error:
            self.skip(plugin, error, node.name)
            return []

    def skip(self, plugin: ExplainingPlugin, error: BaseException, node: str = "") -> None:
        """Name a broken plugin in the log, and do not ask it again."""
        self.broken.add(plugin.name)
        failed(plugin, _POINT, self.pod, error, node)

    def relaxed(self, offers: Offers) -> Pod | None:
        """Return the pod with all these changes; None if a plugin fails to make one."""
        pod = self.pod
        for plugin, proposal in offers:
            if plugin.name in self.broken:
                return None
            if proposal.relax is not None:
                try:
                    pod = _checked_pod(proposal.relax(pod))
                except BaseException as error:
                    self.skip(plugin, error)
                    return None
        return pod


_FIELDS: tuple[tuple[str, Any], ...] = (
    ("key", str),
    ("text", str),
    ("cost", int),
    ("size", int | float),
    ("changes", tuple),
    ("command", str),
)


def check(proposal: object) -> None:
    """Raise a TypeError for something that is not a usable proposal."""
    if not isinstance(proposal, Proposal):
        raise TypeError(f"remedies() must yield Proposal, got {proposal!r}")
    for name, kind in _FIELDS:
        if not isinstance(getattr(proposal, name), kind):
            raise TypeError(f"the {name} of a Proposal is wrong: {getattr(proposal, name)!r}")
    if proposal.relax is None and not proposal.changes:
        raise TypeError(f"the Proposal {proposal.text!r} changes nothing")
    for change in proposal.changes:
        if not isinstance(change, tuple) or len(change) != 3 or not isinstance(change[0], Resource):
            raise TypeError(f"a change is a tuple of a Resource, the old and the new object, got {change!r}")
        objects = [each for each in change[1:] if each is not None]
        if not objects or not all(isinstance(each, Object | Unstructured) for each in objects):
            raise TypeError(f"a change needs objects of moorage.api, got {change[1:]!r}")


def _checked_pod(pod: object) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"relax must return a Pod, got {pod!r}")
    return pod


def _combinations(judgement: Judgement, asking: _Asking) -> list[Offers]:
    """Return combinations that get past all plugins on at least one node, the mildest first."""
    best: dict[tuple[str, ...], Offers] = {}
    for node in _near_nodes(judgement):
        ways = [asking.offers(verdict, node) for verdict, _ in judgement.refusing(node)]
        if not ways or not all(ways):
            continue
        combined: Iterable[Offers]
        combined = zip(ways[0], strict=True) if len(ways) == 1 else itertools.islice(_products(ways), 4)
        for each in combined:
            key = tuple(offer.proposal.key for offer in each)
            if key not in best or _size(each) < _size(best[key]):
                best[key] = each
    return sorted(best.values(), key=lambda each: (_cost(each), _size(each)))


def _products(ways: Sequence[Sequence[Offer]]) -> Iterator[Offers]:
    return itertools.product(*(way[:2] for way in ways))


def _cost(offers: Offers) -> int:
    """Several changes ask more of the user than one."""
    return sum(offer.proposal.cost for offer in offers) + 3 * (len(offers) - 1)


def _size(offers: Offers) -> float:
    return sum(offer.proposal.size for offer in offers)


def _near_nodes(judgement: Judgement) -> Iterator[NodeView]:
    """Yield, of every group of nodes that are refused for the same reasons, those that lack the least. The
    groups that the fewest plugins refuse come first."""
    nodes = judgement.nodes
    rows = nodes.rows
    ids = np.stack([verdict.statuses.ids[rows] for verdict in judgement.verdicts], axis=1)
    kinds, inverse = np.unique(ids, axis=0, return_inverse=True)
    lacking = _lacking(judgement)
    order = sorted(range(len(kinds)), key=lambda kind: int(np.count_nonzero(kinds[kind])))
    staying = np.array([view.node.metadata.deletion_timestamp is None for view in nodes], dtype=np.bool_)
    for kind in order[:_GROUPS]:
        mine = np.flatnonzero((inverse.ravel() == kind) & staying)
        nearest = mine[np.argsort(lacking[mine], kind="stable")[:_NODES_PER_GROUP]]
        yield from nodes.where(np.isin(np.arange(len(rows)), nearest))


def _lacking(judgement: Judgement) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return for each node the largest fraction of a request that it cannot serve."""
    nodes = judgement.nodes
    most = np.zeros(len(nodes.rows))
    for name, ask in pod_requests(judgement.pod).items():
        if ask > 0:
            free: IntArray = nodes.free(name)
            np.maximum(most, (ask - free) / ask, out=most)
    return most


async def _try(judge: Judge, asking: _Asking, offers: Offers, leaving: Collection[str]) -> Remedy | None:
    relaxed = asking.relaxed(offers)
    if relaxed is None:
        return None
    changes = tuple(change for offer in offers for change in offer.proposal.changes)
    with changed(judge, changes):
        feasible, node = outcome(judge, await judge.find(relaxed), leaving)
    if not feasible:
        return None
    kept = None if relaxed is asking.pod else relaxed
    text = sentence(", and ".join(offer.proposal.text for offer in offers))
    text += violation_text(judge, deleted_pods(changes))
    return Remedy(text, feasible, node, kept, changes, _cost(offers), _command(offers, asking.pod, relaxed))


def _command(offers: Offers, pod: Pod, relaxed: Pod) -> str:
    """Return what to copy: the commands of the plugins, or patches for what they change, and the changes of the pod."""
    lines = []
    for _, proposal in offers:
        if proposal.command:
            lines.append(proposal.command)
        else:
            lines += [change_command(change) for change in proposal.changes]
    lines.append(pod_yaml(pod, relaxed))
    return "\n".join(filter(None, lines))


def sentence(text: str) -> str:
    """Return the text with a capital letter in front."""
    return text[:1].upper() + text[1:]
