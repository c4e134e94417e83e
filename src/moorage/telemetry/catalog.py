"""The names, labels and buckets of all metrics: kube-scheduler 1.36's, those of its libraries, and our own.

The word in brackets is the stability that kube-scheduler gives a metric, at the beginning of its help text as
there. Metrics of features that Moorage does not have (claims, pod groups, asynchronous API calls) are absent,
as they are in a kube-scheduler with those gates off.
"""

from __future__ import annotations

from moorage.telemetry.instruments import Family, Gauge, Histogram, LabelCounter, exponential

ATTEMPT = exponential(0.001, 2, 15)
POINT = exponential(0.0001, 2, 12)
PLUGIN = exponential(0.00001, 1.5, 20)
SLI = exponential(0.01, 2, 20)
REST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class MetricCatalog:
    """One process's metrics. Nothing here is global: two schedulers in one process do not meet."""

    def __init__(self) -> None:
        self._scheduling()
        self._queueing()
        self._preempting()
        self._reusing()
        self._talking()
        self._own()

    def families(self) -> list[Family]:
        return [value for value in vars(self).values() if isinstance(value, Family)]

    def _scheduling(self) -> None:
        self.attempts = LabelCounter(
            "scheduler_schedule_attempts_total",
            "[STABLE] Attempts to schedule pods by result: scheduled, unschedulable (no node fits) or error.",
            ("result", "profile"),
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Duration of an attempt, its binding included.",
            ("result", "profile"),
            bounds=ATTEMPT,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "[ALPHA] Duration of the search for a node.",
            bounds=ATTEMPT,
        )
        self.point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "[STABLE] Duration of all plugins of an extension point together.",
            ("extension_point", "status", "profile"),
            bounds=POINT,
        )
        self.plugin_seconds = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "[ALPHA] Duration of a plugin at an extension point, in one cycle of ten.",
            ("plugin", "extension_point", "status"),
            bounds=PLUGIN,
        )
        self.evaluations = LabelCounter(
            "scheduler_plugin_evaluation_total",
            "[BETA] Attempts in which a plugin was asked, by extension point. One call judges all nodes.",
            ("plugin", "extension_point", "profile"),
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] From the first time that a pod could be tried until it was bound, by number of attempts.",
            ("attempts",),
            bounds=SLI,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Attempts that it took to schedule a pod.",
            bounds=exponential(1, 2, 5),
        )
        self.after_flush = LabelCounter(
            "scheduler_pod_scheduled_after_flush_total",
            "[ALPHA] Pods scheduled only after the timeout for parked pods: a wake-up is missing.",
        )
        self.permit_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] How long pods waited for Permit, by result.",
            ("result",),
            bounds=ATTEMPT,
        )

    def _queueing(self) -> None:
        self.pending = Gauge(
            "scheduler_pending_pods",
            "[STABLE] Pending pods by place: active, backoff, unschedulable or gated.",
            ("queue",),
        )
        self.incoming = LabelCounter(
            "scheduler_queue_incoming_pods_total",
            "[STABLE] Pods that came to a place of the queue, by the event that brought them.",
            ("queue", "event"),
        )
        self.unschedulable = Gauge(
            "scheduler_unschedulable_pods",
            "[BETA] Pending pods by the plugin that refused them; a pod counts for each of its plugins.",
            ("plugin", "profile"),
        )
        self.hint_seconds = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "[ALPHA] Duration of a queueing hint, by plugin, event and answer.",
            ("plugin", "event", "hint"),
            bounds=PLUGIN,
        )
        self.event_seconds = Histogram(
            "scheduler_event_handling_duration_seconds",
            "[ALPHA] Duration of handling an event of the cluster.",
            ("event",),
            bounds=POINT,
        )
        self.inflight = Gauge(
            "scheduler_inflight_events",
            "[ALPHA] Events kept for pods that are being scheduled, and those pods as PodPopped.",
            ("event",),
        )
        self.cache_size = Gauge(
            "scheduler_cache_size", "[ALPHA] Nodes, pods and assumed pods in the cache.", ("type",)
        )
        self.goroutines = Gauge(
            "scheduler_goroutines", "[BETA] Tasks under way, by what they do.", ("operation",)
        )

    def _preempting(self) -> None:
        self.preemptions = LabelCounter(
            "scheduler_preemption_attempts_total", "[STABLE] Attempts that went as far as preemption."
        )
        self.victims = Histogram(
            "scheduler_preemption_victims",
            "[STABLE] Victims of a preemption.",
            bounds=exponential(1, 2, 7),
        )
        self.preemption_seconds = Histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "[ALPHA] Duration of sending the victims away, by result.",
            ("result",),
            bounds=SLI,
        )
        self.preemption_runs = LabelCounter(
            "scheduler_preemption_goroutines_execution_total",
            "[ALPHA] How often victims were sent away, by result.",
            ("result",),
        )

    def _reusing(self) -> None:
        self.batches = LabelCounter(
            "scheduler_batch_attempts_total",
            "[ALPHA] Attempts that stood on the evaluation of an earlier pod (hint_used) or not (no_hint).",
            ("profile", "result"),
        )

    def _talking(self) -> None:
        self.leader = Gauge(
            "leader_election_master_status",
            "[ALPHA] 1 while this process holds the lease, else 0.",
            ("name",),
        )
        self.slow_path = LabelCounter(
            "leader_election_slowpath_total",
            "[ALPHA] Renewals that met another version of the lease.",
            ("name",),
        )
        self.requests = LabelCounter(
            "rest_client_requests_total",
            "[ALPHA] Requests to the API server by answer.",
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
            "[ALPHA] How long the client's own limit held requests up.",
            ("verb", "host"),
            bounds=REST,
        )
        self.retries = LabelCounter(
            "rest_client_request_retries_total",
            "[ALPHA] Requests that were sent again.",
            ("code", "verb", "host"),
        )
        self.build = Gauge(
            "kubernetes_build_info",
            "[ALPHA] Always 1; the labels tell the version, whose behaviour is that of kube-scheduler's.",
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
            "kubernetes_feature_enabled", "[BETA] Whether a feature gate is on.", ("name", "stage")
        )

    def _own(self) -> None:
        self.malformed = LabelCounter(
            "moorage_malformed_objects_total",
            "Objects that were set aside because they could not be read.",
            ("resource",),
        )
        self.differences = LabelCounter(
            "moorage_comparer_differences_total",
            "Differences between cache or queue and the API server that were found and repaired.",
            ("kind",),
        )
        self.comparisons = LabelCounter(
            "moorage_comparer_rounds_total", "Complete comparisons of cache and queue with the API server."
        )
        self.corrections = LabelCounter(
            "moorage_cache_corrections_total",
            "Events that contradicted the cache, by what was wrong.",
            ("kind",),
        )
        self.watch_lag = Histogram(
            "moorage_watch_lag_seconds",
            "From the answer to a bind until the watch showed the bound pod.",
            bounds=exponential(0.001, 2, 16),
        )
        self.slow_hooks = LabelCounter(
            "moorage_slow_hooks_total",
            "Calls that held the scheduling loop up, by plugin.",
            ("plugin", "hook"),
        )
        self.loop_lag = Histogram(
            "moorage_loop_lag_seconds",
            "How late the scheduling loop's heartbeat came, where it was late.",
            bounds=exponential(0.001, 2, 16),
        )
        self.unknown_binds = LabelCounter(
            "moorage_binds_in_doubt_total",
            "Binds without a clear answer, by what the API server said afterwards.",
            ("outcome",),
        )
        self.overcommits = LabelCounter(
            "moorage_overcommits_total",
            "Binds of other schedulers that left a node with more requested than it has, by resource.",
            ("resource",),
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
            "moorage_plugin_failures_total", "Exceptions and wrong answers of plugins.", ("plugin", "point")
        )
        self.plugin_run_failures = LabelCounter(
            "moorage_plugin_run_failures_total",
            "Failures of the background work of plugins, after each of which it is started again.",
            ("plugin",),
        )
        self.config_reloads = LabelCounter(
            "moorage_config_reloads_total",
            "Configurations that a running scheduler was given, by result: applied or failed.",
            ("result",),
        )
        self.config_generation = Gauge(
            "moorage_config_generation", "Number of the configuration in use; the first one is 1."
        )
        self.events_dropped = LabelCounter(
            "moorage_events_dropped_total", "Events for users that were not written."
        )
