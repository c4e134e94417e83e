"""The scheduling queue: active, backoff, unschedulable and gated pods, and the events that move them.

It follows pkg/scheduler/backend/queue of kube-scheduler.
"""

from moorage.queue.hints import QueueHooks
from moorage.queue.pending import Location, PendingPodsView, QueueCorrupted
from moorage.queue.places import Place
from moorage.queue.scheduling_queue import SchedulingQueue

__all__ = ["Location", "PendingPodsView", "Place", "QueueCorrupted", "QueueHooks", "SchedulingQueue"]
