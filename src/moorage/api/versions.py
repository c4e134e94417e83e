"""The Kubernetes minors whose kube-scheduler Moorage can follow, and everything that depends on the choice.

`BEHAVIOURS` has one column per minor and one field per difference. Code asks a field; no module compares version
numbers. A further minor is one more column here, and one in `config.gates` and `config.defaults`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from moorage.api.errors import MoorageError


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What kube-scheduler of one minor does where minors differ."""

    minor: str
    """The minor, such as 1.37."""
    release: str
    """The release whose recorded answers the tests compare with, such as v1.37.1."""
    resize_takes_largest_sum: bool
    """Whether a pod in the middle of a resize counts with the largest of three sums over its containers (asked,
    allocated, actual) instead of the sum of the largest amounts of each container. Follows AggregateContainerRequests
    in k8s.io/component-helpers/resource/helpers.go."""
    namespace_selector_leaks: bool
    """Whether the namespace selector of an incoming pod's affinity term is also matched against an empty set of labels,
    so that NotIn and DoesNotExist select every namespace (InterPodAffinity, mergeAffinityTermNamespacesIfNotEmpty)."""
    one_anti_affinity_term_wakes: bool
    """Whether a removed or relabelled pod wakes a pod if it matched any of the required anti-affinity terms, instead of
    all of them (InterPodAffinity, isSchedulableAfterPodChange)."""
    image_volumes_raise_ceiling: bool
    """Whether ImageLocality counts image volumes in the size that gives the full score."""
    node_name_narrows: bool
    """Whether NodeName narrows the search to `spec.nodeName` at PreFilter, instead of refusing the other nodes one by
    one."""
    requires_listed_csi_driver: bool
    """Whether a CSIDriver with `preventPodSchedulingIfMissing` must be listed in the CSINode (NodeVolumeLimits,
    KEP-5030). The feature gate VolumeLimitScaling decides; here stands its default."""
    reports_no_idle_claims: bool
    """Whether DynamicResources reports "no new claims to deallocate" in the message of every unschedulable pod."""
    reports_preemption: bool
    """Whether a successful preemption reports the node and the number of victims in the pod's message."""
    overdrawn_budget_ends_check: bool
    """Whether the first PodDisruptionBudget without a disruption left ends the check of a victim, so that the budgets
    after it are not charged (filterPodsWithPDBViolation of DefaultPreemption)."""
    victims_in_memory_activate: bool
    """Whether the preemptor is activated at once when its last victim was only in memory, waiting on Permit or in
    PreBind."""
    bind_tries: int
    """How often DefaultBinder sends a bind whose answer is a transient error."""
    node_add_implies_taint: bool
    """Whether a plugin that registers Node/Add is also woken by changed taints (k/k#109437)."""
    gated_pods_keep_nomination: bool
    """Whether the nomination of a gated pod holds its space."""
    waiting_pod: str
    """The name of a waiting pod in event labels, as in UnscheduledPodAdd."""
    own_pod: str
    """The name of the pending pod itself in event labels, as in TargetPodUpdate."""
    decoding_fills_pod_level: bool
    """Whether decoding a pod fills in pod-level requests, instead of the API server when it stores the pod
    (PodLevelResourcesFixDefaulting, KEP-2837)."""
    entity_metrics: bool
    """Whether the queue is also measured in entities (`queued_entities`, `queue_incoming_entities_total`), and
    `pending_pods` has the queues `incomplete` and `pending`."""
    beta_timings: bool
    """Whether the durations of plugins and of the scheduling algorithm are beta metrics instead of alpha."""
    pod_group_post_filter: bool
    """Whether a profile has the plugin set `podGroupPostFilter`."""


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

DEFAULT_VERSION = "1.37"
"""The minor that is followed unless `--emulated-version` names another."""

DEFAULT_BEHAVIOUR = BEHAVIOURS[DEFAULT_VERSION]


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
