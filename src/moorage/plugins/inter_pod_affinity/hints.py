"""Queueing hints of InterPodAffinity (KEP-4247), as in pkg/scheduler/framework/plugins/interpodaffinity/plugin.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm, PodTerms, compile_pod_terms
from moorage.api.versions import Behaviour
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.plugins.inter_pod_affinity.terms import matches_all

POD_EVENT = ClusterEvent(POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE)
NODE_EVENT = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)


def registrations(behaviour: Behaviour) -> Sequence[Registration]:
    after_change = partial(after_pod_change, one_is_enough=behaviour.one_anti_affinity_term_wakes)
    return [Registration(POD_EVENT, after_change), Registration(NODE_EVENT, after_node_change)]


def after_pod_change(pod: Pod, old: Any, new: Any, *, one_is_enough: bool = True) -> QueueingHint:
    """Queue if a pod now matches the affinity of `pod`, or no longer conflicts with its anti-affinity: with one of the
    terms, or with all of them as up to 1.36."""
    before = old if isinstance(old, Pod) else None
    after = new if isinstance(new, Pod) else None
    if before is not None and after is not None and after.uid == pod.uid:
        return QueueingHint.QUEUE  # its own labels have changed
    if any(seen is not None and not _placed(seen) for seen in (before, after)):
        return QueueingHint.SKIP
    terms = checked_terms(pod)
    if before is None:
        return _hint(after is not None and matches_all(terms.affinity, after))
    if after is None:
        hostile = matches_any if one_is_enough else matches_all
        return _hint(hostile(terms.anti_affinity, before) or hostile(checked_terms(before).anti_affinity, pod))
    met = not matches_all(terms.affinity, before) and matches_all(terms.affinity, after)
    if one_is_enough:
        freed = any(term.matches(before) and not term.matches(after) for term in terms.anti_affinity)
    else:
        freed = matches_all(terms.anti_affinity, before) and not matches_all(terms.anti_affinity, after)
    return _hint(met or freed)


def matches_any(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    return any(term.matches(pod) for term in terms)


def after_node_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a node joins a domain, or leaves a domain that was closed to `pod`."""
    if not isinstance(new, Node):
        return QueueingHint.QUEUE
    terms = checked_terms(pod)
    if not isinstance(old, Node):
        # A new node without the key is open to anti-affinity as well, so that any term is a reason to look.
        return _hint(any(t.topology_key in new.labels for t in terms.affinity) or bool(terms.anti_affinity))
    came = any(_moved(t, old.labels, new.labels) and t.topology_key in new.labels for t in terms.affinity)
    went = any(_moved(t, old.labels, new.labels) and t.topology_key in old.labels for t in terms.anti_affinity)
    return _hint(came or went)


def checked_terms(pod: Pod) -> PodTerms:
    """Return the terms. An invalid selector raises, which requeues the pod."""
    terms = compile_pod_terms(pod)
    if terms.errors:
        raise ValueError("; ".join(terms.errors))
    return terms


def _placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.nominated_node_name)


def _moved(term: AffinityTerm, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    return old.get(term.topology_key) != new.get(term.topology_key)


def _hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
