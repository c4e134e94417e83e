"""PrioritySort: higher priority first, then who has waited longer in the queue."""

from __future__ import annotations

from typing import Any

from mooring.framework.points import SortKeyPlugin
from mooring.framework.queued import QueuedPod


class PrioritySort(SortKeyPlugin):
    name = "PrioritySort"

    def key(self, pod: QueuedPod) -> Any:
        return (-pod.pod.priority, pod.timestamp)
