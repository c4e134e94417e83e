"""Arguments of Coscheduling."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from moorage.api.meta import Int64
from moorage.api.problems import Problem, child, invalid
from moorage.framework.args import ArgsContext, PluginArgs

DEFAULT_WAIT = 60


class CoschedulingArgs(PluginArgs):
    """How long members wait, and what a failed group has to expect."""

    permit_waiting_time_seconds: Int64 = DEFAULT_WAIT
    """Where the PodGroup has no scheduleTimeoutSeconds."""
    pod_group_backoff_seconds: Int64 = 0
    """For which a failed group is refused; 0: not at all."""
    pod_group_reject_percentage: Int64 = 10
    """A group of which at most this share has no node is not rejected for one more member without."""
    denied_pg_expiration_time_seconds: Int64 = field(default=0, name="deniedPGExpirationTimeSeconds")
    """What podGroupBackoffSeconds was called in old releases; counts where that one is 0."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        for name, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
            ("deniedPGExpirationTimeSeconds", self.denied_pg_expiration_time_seconds),
        ):
            if value < 0:
                yield invalid(child(path, name), value, "must be zero or positive")
        if not 0 <= self.pod_group_reject_percentage <= 100:
            where, value = child(path, "podGroupRejectPercentage"), self.pod_group_reject_percentage
            yield invalid(where, value, "must be from 0 to 100")
