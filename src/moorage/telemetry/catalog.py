"""The names, labels and buckets of all metrics.

They are the metrics of kube-scheduler (pkg/scheduler/metrics/metrics.go) and of its libraries, and Moorage's own. A
`MetricsVersion` says where they depend on the emulated version. As in kube-scheduler, the help text begins with the
stability level in brackets. Metrics of features that Moorage does not have (resource claims, pod groups, asynchronous
API calls) are absent, as they are from a kube-scheduler with those feature gates disabled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from moorage.telemetry.instruments import Family, Gauge, Histogram, LabelCounter, exponential

ATTEMPT = exponential(0.001, 2, 15)
POINT = exponential(0.0001, 2, 12)
PLUGIN = exponential(0.00001, 1.5, 20)
SLI = exponential(0.01, 2, 20)
REST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class MetricsVersion(Protocol):
    """What the metrics depend on; `api.versions.Behaviour` is one."""

    @property
    def entity_metrics(self) -> bool:
        """Whether the queue is also measured in entities."""

    @property
    def beta_timings(self) -> bool:
        """Whether the durations of plugins and of the algorithm are beta."""


@dataclass(frozen=True, slots=True)
class NewestMetrics:
    """The metrics of the newest version."""

    entity_metrics: bool = True
    beta_timings: bool = True


class MetricCatalog:
    """The metrics of one scheduler. Nothing is global, so two schedulers in one process have separate metrics."""

    def __init__(self, version: MetricsVersion) -> None:
        self._version = version
        self._timing_level = "BETA" if version.beta_timings else "ALPHA"
        self._scheduling()
        self._queueing()
        self._preempting()
        self._reusing()
        self._talking()
        self._own()

    def families(self) -> list[Family]:
        """Return all metrics."""
        found = [value for value in vars(self).values() if isinstance(value, Family)]
        absent = () if self._version.entity_metrics else (self.queued_entities, self.incoming_entities)
        return [family for family in found if family not in absent]

    def _scheduling(self) -> None:
        self.attempts = LabelCounter(
            "scheduler_schedule_attempts_total",
            "[STABLE] Number of attempts to schedule pods, by result: scheduled, unschedulable or error.",
            ("result", "profile"),
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Duration of an attempt, including the binding.",
            ("result", "profile"),
            bounds=ATTEMPT,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            f"[{self._timing_level}] Duration of choosing a node.",
            bounds=ATTEMPT,
        )
        self.point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "[STABLE] Duration of running all plugins of an extension point.",
            ("extension_point", "status", "profile"),
            bounds=POINT,
        )
        self.plugin_seconds = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            f"[{self._timing_level}] Duration of running a plugin at an extension point, sampled in one of ten cycles.",
            ("plugin", "extension_point", "status"),
            bounds=PLUGIN,
        )
        self.evaluations = LabelCounter(
            "scheduler_plugin_evaluation_total",
            "[BETA] Number of attempts in which a plugin ran, by extension point. One call covers all nodes.",
            ("plugin", "extension_point", "profile"),
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] Time from when a pod first became active until it was bound, by number of attempts.",
            ("attempts",),
            bounds=SLI,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Number of attempts needed to schedule a pod.",
            bounds=exponential(1, 2, 5),
        )
        self.after_flush = LabelCounter(
            "scheduler_pod_scheduled_after_flush_total",
            "[ALPHA] Pods scheduled only after the timeout for unschedulable pods: a hint is missing.",
        )
        self.permit_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] Duration of waiting on Permit, by result.",
            ("result",),
            bounds=ATTEMPT,
        )

    def _queueing(self) -> None:
        self.pending = Gauge(
            "scheduler_pending_pods",
            "[STABLE] Number of pending pods by queue: active, backoff, unschedulable or gated.",
            ("queue",),
        )
        self.incoming = LabelCounter(
            "scheduler_queue_incoming_pods_total",
            "[STABLE] Number of pods added to a queue, by event and queue.",
            ("queue", "event"),
        )
        self.queued_entities = Gauge(
            "scheduler_queued_entities",
            "[ALPHA] Number of queued entities by queue and type: pods outside of pod groups, and pod groups.",
            ("queue", "type"),
        )
        self.incoming_entities = LabelCounter(
            "scheduler_queue_incoming_entities_total",
            "[ALPHA] Number of entities added to a queue, by queue, event and type.",
            ("queue", "event", "type"),
        )
        self.unschedulable = Gauge(
            "scheduler_unschedulable_pods",
            "[BETA] Number of pending pods by rejecting plugin. A pod counts once for each plugin.",
            ("plugin", "profile"),
        )
        self.hint_seconds = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "[ALPHA] Duration of a queueing hint, by plugin, event and result.",
            ("plugin", "event", "hint"),
            bounds=PLUGIN,
        )
        self.event_seconds = Histogram(
            "scheduler_event_handling_duration_seconds",
            "[ALPHA] Duration of handling a cluster event.",
            ("event",),
            bounds=POINT,
        )
        self.inflight = Gauge(
            "scheduler_inflight_events",
            "[ALPHA] Number of events kept for pods in flight. PodPopped counts the pods themselves.",
            ("event",),
        )
        self.cache_size = Gauge(
            "scheduler_cache_size", "[ALPHA] Number of nodes, pods and assumed pods in the cache.", ("type",)
        )
        self.goroutines = Gauge("scheduler_goroutines", "[BETA] Number of running tasks, by operation.", ("operation",))

    def _preempting(self) -> None:
        self.preemptions = LabelCounter(
            "scheduler_preemption_attempts_total", "[STABLE] Number of attempts that ran preemption."
        )
        self.victims = Histogram(
            "scheduler_preemption_victims", "[STABLE] Number of victims of a preemption.", bounds=exponential(1, 2, 7)
        )
        self.preemption_seconds = Histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "[ALPHA] Duration of deleting the victims, by result.",
            ("result",),
            bounds=SLI,
        )
        self.preemption_runs = LabelCounter(
            "scheduler_preemption_goroutines_execution_total",
            "[ALPHA] Number of preemptions whose victims were deleted, by result.",
            ("result",),
        )

    def _reusing(self) -> None:
        self.batches = LabelCounter(
            "scheduler_batch_attempts_total",
            "[ALPHA] Number of attempts that reused (hint_used) the evaluation of an earlier pod or did not.",
            ("profile", "result"),
        )

    def _talking(self) -> None:
        self.leader = Gauge(
            "leader_election_master_status", "[ALPHA] 1 if this process is the leader, otherwise 0.", ("name",)
        )
        self.slow_path = LabelCounter(
            "leader_election_slowpath_total",
            "[ALPHA] Number of lease renewals that failed because the lease had changed.",
            ("name",),
        )
        self.requests = LabelCounter(
            "rest_client_requests_total",
            "[ALPHA] Number of requests to the API server, by status code.",
            ("code", "method", "host"),
        )
        self.request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Duration of requests to the API server.",
            ("verb", "host"),
            bounds=REST,
        )
        self.limiter_seconds = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "[ALPHA] Duration of waiting for the client-side rate limiter.",
            ("verb", "host"),
            bounds=REST,
        )
        self.retries = LabelCounter(
            "rest_client_request_retries_total",
            "[ALPHA] Number of retried requests to the API server.",
            ("code", "verb", "host"),
        )
        self.build = Gauge(
            "kubernetes_build_info",
            "[ALPHA] Always 1. The labels hold the version and the kube-scheduler release it follows.",
            (
                "build_date",
                "compiler",
                "git_commit",
                "git_tree_state",
                "git_version",
                "go_version",
                "major",
                "minor",
                "platform",
            ),
        )
        self.features = Gauge(
            "kubernetes_feature_enabled", "[BETA] 1 if a feature gate is enabled, otherwise 0.", ("name", "stage")
        )

    def _own(self) -> None:
        self.malformed = LabelCounter(
            "moorage_malformed_objects_total",
            "Number of objects that were skipped because they could not be decoded.",
            ("resource",),
        )
        self.differences = LabelCounter(
            "moorage_comparer_differences_total",
            "Number of differences between the cache or queue and the API server that were repaired.",
            ("kind",),
        )
        self.comparisons = LabelCounter(
            "moorage_comparer_rounds_total", "Number of complete comparisons of cache and queue with the API server."
        )
        self.rewinds = LabelCounter(
            "moorage_api_server_rewinds_total",
            "Number of times that the API server had lost changes that it had sent, as after a restored backup; by the "
            "kind whose version showed it.",
            ("resource",),
        )
        self.corrections = LabelCounter(
            "moorage_cache_corrections_total",
            "Number of events that contradicted the cache, by kind of contradiction.",
            ("kind",),
        )
        self.watch_lag = Histogram(
            "moorage_watch_lag_seconds",
            "Time from the response to a bind until the watch showed the bound pod.",
            bounds=exponential(0.001, 2, 16),
        )
        self.slow_hooks = LabelCounter(
            "moorage_slow_hooks_total",
            "Number of calls that blocked the scheduling loop for too long, by plugin.",
            ("plugin", "hook"),
        )
        self.slow_attempts = LabelCounter(
            "moorage_slow_attempts_total",
            "Number of attempts that held up the scheduler for more than half a second, by the call that took longest.",
            ("plugin", "extension_point"),
        )
        self.loop_lag = Histogram(
            "moorage_loop_lag_seconds",
            "Delay of the scheduling loop's heartbeat, if it was late.",
            bounds=exponential(0.001, 2, 16),
        )
        self.unknown_binds = LabelCounter(
            "moorage_binds_in_doubt_total",
            "Number of binds without a clear response, by the state of the pod that was read afterwards.",
            ("outcome",),
        )
        self.overcommits = LabelCounter(
            "moorage_overcommits_total",
            "Number of binds by other schedulers that overcommitted a node, by resource.",
            ("resource",),
            max_children=100,  # any pod can name thousands of resources
        )
        self.extender_requests = LabelCounter(
            "moorage_extender_requests_total",
            "Requests to extenders by outcome: success, not_sent, no_answer, bad_answer or cancelled.",
            ("extender", "verb", "outcome"),
        )
        self.extender_seconds = Histogram(
            "moorage_extender_request_duration_seconds",
            "Duration of requests to extenders.",
            ("extender", "verb"),
            bounds=REST,
        )
        self.plugin_failures = LabelCounter(
            "moorage_plugin_failures_total", "Number of exceptions and invalid results of plugins.", ("plugin", "point")
        )
        self.plugin_run_failures = LabelCounter(
            "moorage_plugin_run_failures_total",
            "Number of times that the `run` method of a plugin failed and was restarted.",
            ("plugin",),
        )
        self.config_reloads = LabelCounter(
            "moorage_config_reloads_total",
            "Number of configuration reloads, by result: applied or failed.",
            ("result",),
        )
        self.config_generation = Gauge(
            "moorage_config_generation", "Sequence number of the configuration in use, starting with 1."
        )
        self.events_dropped = LabelCounter(
            "moorage_events_dropped_total", "Number of Kubernetes events that could not be written."
        )
