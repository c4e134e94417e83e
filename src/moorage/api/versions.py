"""The Kubernetes minors whose kube-scheduler Moorage can follow, and everything that depends on the choice.

`BEHAVIOURS` has one column per minor and one field per difference. Code asks a field; no module compares version
numbers. A further minor is one more column here, and one in `config.gates` and `config.defaults`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

from moorage.api.errors import MoorageError

_TEXT, _DECIDES = "change", "decides"
ANY_PLUGIN = "*"
"""Stands for a change that does not belong to one plugin."""


def _change(text: str, decides: str = "") -> Any:
    """Return a field with the sentence that users read about its change from one minor to the next.

    `decides` is the plugin whose answers about a pod on one state depend on the field, or ANY_PLUGIN; empty if only
    the queue, binding, metrics or the configuration do."""
    return field(metadata={_TEXT: text, _DECIDES: decides})


class FieldChange(NamedTuple):
    """What another minor changes, for users."""

    field: str
    """The field of `Behaviour`."""
    text: str
    decides: str
    """The plugin whose answers about a pod on one state change, ANY_PLUGIN, or empty."""
    value: Any
    """The value in the newer minor."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What kube-scheduler of one minor does where minors differ."""

    minor: str = _change("kube-scheduler reports another minor version.")
    """The minor, such as 1.37."""
    release: str = _change("kube-scheduler reports another release.")
    """The release whose recorded answers the tests compare with, such as v1.37.1."""
    resize_takes_largest_sum: bool = _change(
        "A pod in the middle of a resize counts with the largest of three sums (asked, allocated, actual) "
        "instead of the sum of the largest amounts of its containers.",
        decides=ANY_PLUGIN,
    )
    """Whether a pod in the middle of a resize counts with the largest of three sums over its containers (asked,
    allocated, actual) instead of the sum of the largest amounts of each container. Follows AggregateContainerRequests
    in k8s.io/component-helpers/resource/helpers.go."""
    namespace_selector_leaks: bool = _change(
        "NotIn and DoesNotExist in the namespaceSelector of a pod's affinity term no longer select every namespace.",
        decides="InterPodAffinity",
    )
    """Whether the namespace selector of an incoming pod's affinity term is also matched against an empty set of labels,
    so that NotIn and DoesNotExist select every namespace (InterPodAffinity, mergeAffinityTermNamespacesIfNotEmpty)."""
    one_anti_affinity_term_wakes: bool = _change(
        "A removed or relabelled pod wakes a pending pod if it matched one of its anti-affinity terms, and "
        "need not match all."
    )
    """Whether a removed or relabelled pod wakes a pod if it matched any of the required anti-affinity terms, instead of
    all of them (InterPodAffinity, isSchedulableAfterPodChange)."""
    image_volumes_raise_ceiling: bool = _change(
        "ImageLocality counts image volumes in the size that gives the full score, so pods with image volumes "
        "score lower.",
        decides="ImageLocality",
    )
    """Whether ImageLocality counts image volumes in the size that gives the full score."""
    node_name_narrows: bool = _change(
        "NodeName narrows the search to spec.nodeName at PreFilter, so other nodes have another reason in the message.",
        decides="NodeName",
    )
    """Whether NodeName narrows the search to `spec.nodeName` at PreFilter, instead of refusing the other nodes one by
    one."""
    requires_listed_csi_driver: bool = _change(
        "A CSIDriver with preventPodSchedulingIfMissing must be listed in the CSINode of a node (feature gate "
        "VolumeLimitScaling).",
        decides="NodeVolumeLimits",
    )
    """Whether a CSIDriver with `preventPodSchedulingIfMissing` must be listed in the CSINode (NodeVolumeLimits,
    KEP-5030). The feature gate VolumeLimitScaling decides; here stands its default."""
    reports_no_idle_claims: bool = _change(
        'The message of an unschedulable pod no longer says "no new claims to deallocate".', decides="DynamicResources"
    )
    """Whether DynamicResources reports "no new claims to deallocate" in the message of every unschedulable pod."""
    reports_preemption: bool = _change(
        "The message of a successful preemption names the node and the number of victims.", decides=ANY_PLUGIN
    )
    """Whether a successful preemption reports the node and the number of victims in the pod's message."""
    overdrawn_budget_ends_check: bool = _change(
        "The first PodDisruptionBudget without a disruption left ends the check of a victim, so later budgets "
        "are not charged.",
        decides=ANY_PLUGIN,
    )
    """Whether the first PodDisruptionBudget without a disruption left ends the check of a victim, so that the budgets
    after it are not charged (filterPodsWithPDBViolation of DefaultPreemption)."""
    victims_in_memory_activate: bool = _change(
        "A pod is retried at once when its last victim was waiting on Permit or in PreBind."
    )
    """Whether the preemptor is activated at once when its last victim was only in memory, waiting on Permit or in
    PreBind."""
    bind_tries: int = _change("A bind whose answer is a transient error is sent up to four times.")
    """How often DefaultBinder sends a bind whose answer is a transient error."""
    node_add_implies_taint: bool = _change(
        "A changed taint wakes only pods that a plugin with an interest in taints rejected, and no longer all "
        "that wait for a new node."
    )
    """Whether a plugin that registers Node/Add is also woken by changed taints (k/k#109437)."""
    gated_pods_keep_nomination: bool = _change(
        "The nomination of a gated pod holds its space on the node.", decides=ANY_PLUGIN
    )
    """Whether the nomination of a gated pod holds its space."""
    waiting_pod: str = _change("Event labels name a waiting pod UnscheduledPod instead of UnschedulablePod.")
    """The name of a waiting pod in event labels, as in UnscheduledPodAdd."""
    own_pod: str = _change("Event labels name the pending pod itself TargetPod instead of UnschedulablePod.")
    """The name of the pending pod itself in event labels, as in TargetPodUpdate."""
    decoding_fills_pod_level: bool = _change(
        "Missing pod-level requests are filled in when a pod is stored, and no longer when it is read.",
        decides=ANY_PLUGIN,
    )
    """Whether decoding a pod fills in pod-level requests, instead of the API server when it stores the pod
    (PodLevelResourcesFixDefaulting, KEP-2837)."""
    entity_metrics: bool = _change(
        "The queue is also measured in entities (queued_entities, queue_incoming_entities_total), and "
        "pending_pods has the queues incomplete and pending."
    )
    """Whether the queue is also measured in entities (`queued_entities`, `queue_incoming_entities_total`), and
    `pending_pods` has the queues `incomplete` and `pending`."""
    beta_timings: bool = _change(
        "plugin_execution_duration_seconds and scheduling_algorithm_duration_seconds are beta metrics."
    )
    """Whether the durations of plugins and of the scheduling algorithm are beta metrics instead of alpha."""
    pod_group_post_filter: bool = _change("A profile has the plugin set podGroupPostFilter.")
    """Whether a profile has the plugin set `podGroupPostFilter`."""

    def changes_to(self, newer: Behaviour) -> list[FieldChange]:
        """Return the fields in which a newer minor differs."""
        return [
            FieldChange(each.name, each.metadata[_TEXT], each.metadata[_DECIDES], getattr(newer, each.name))
            for each in fields(self)
            if getattr(self, each.name) != getattr(newer, each.name)
        ]


_V1_36 = Behaviour(
    minor="1.36",
    release="v1.36.4",
    resize_takes_largest_sum=False,
    namespace_selector_leaks=True,
    one_anti_affinity_term_wakes=False,
    image_volumes_raise_ceiling=False,
    node_name_narrows=False,
    requires_listed_csi_driver=False,
    reports_no_idle_claims=True,
    reports_preemption=False,
    overdrawn_budget_ends_check=False,
    victims_in_memory_activate=False,
    bind_tries=1,
    node_add_implies_taint=True,
    gated_pods_keep_nomination=False,
    waiting_pod="UnschedulablePod",
    own_pod="UnschedulablePod",
    decoding_fills_pod_level=True,
    entity_metrics=False,
    beta_timings=False,
    pod_group_post_filter=False,
)
_V1_37 = Behaviour(
    minor="1.37",
    release="v1.37.1",
    resize_takes_largest_sum=True,
    namespace_selector_leaks=False,
    one_anti_affinity_term_wakes=True,
    image_volumes_raise_ceiling=True,
    node_name_narrows=True,
    requires_listed_csi_driver=True,
    reports_no_idle_claims=False,
    reports_preemption=True,
    overdrawn_budget_ends_check=True,
    victims_in_memory_activate=True,
    bind_tries=4,
    node_add_implies_taint=False,
    gated_pods_keep_nomination=True,
    waiting_pod="UnscheduledPod",
    own_pod="TargetPod",
    decoding_fills_pod_level=False,
    entity_metrics=True,
    beta_timings=True,
    pod_group_post_filter=True,
)

BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType({found.minor: found for found in (_V1_36, _V1_37)})
"""Minor → behaviour, oldest first."""

REMOVED_KINDS: Mapping[str, tuple[tuple[str, str, str, str], ...]] = MappingProxyType(
    {
        "1.37": (
            ("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"),
            ("scheduling.k8s.io", "v1alpha2", "workloads", "Workload"),
        )
    }
)
"""Minor → the kinds of the scheduler that it no longer serves, as group, version, plural and kind. Stored objects must
be deleted before the upgrade."""

DEFAULT_VERSION = "1.37"
"""The minor that is followed unless `--emulated-version` names another."""

DEFAULT_BEHAVIOUR = BEHAVIOURS[DEFAULT_VERSION]


def upgrade_path(to: str, since: str = "") -> tuple[Behaviour, Behaviour]:
    """Return the behaviour before and after an upgrade. Without `since`, it starts at the newest older minor.

    Raises a MoorageError for an unknown version and for an upgrade that is none."""
    minors = list(BEHAVIOURS)
    after = behaviour_of(to or "(none)")
    if since:
        before = behaviour_of(since)
    elif after.minor == minors[0]:
        raise MoorageError(f"{after.minor} is the oldest version that Moorage knows; choose {' or '.join(minors[1:])}")
    else:
        before = BEHAVIOURS[minors[minors.index(after.minor) - 1]]
    if minors.index(before.minor) >= minors.index(after.minor):
        raise MoorageError(
            f"{after.minor} is not newer than {before.minor}, so this is not an upgrade; choose a newer version, or "
            "an older --emulated-version to start from"
        )
    return before, after


def behaviour_of(text: str) -> Behaviour:
    """Return the behaviour of a version as `--emulated-version` takes it: a minor, with or without a leading v or the
    name of the component (`kube=1.36`). An empty text means the default. Raises a MoorageError for any other."""
    minor = text.strip().removeprefix("kube=").removeprefix("v") or DEFAULT_VERSION
    found = BEHAVIOURS.get(minor)
    if found is None:
        raise MoorageError(
            f'version "{text}" is not supported; Moorage answers as kube-scheduler {" or ".join(BEHAVIOURS)}'
        )
    return found
