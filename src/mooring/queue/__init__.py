"""Which pod is next: active, backoff, parked and gated pods, and the events that move them."""

from mooring.queue.hints import QueueHooks
from mooring.queue.pending import Location, PendingPods, QueueCorrupted
from mooring.queue.places import Place
from mooring.queue.scheduling_queue import SchedulingQueue

__all__ = ["Location", "PendingPods", "Place", "QueueCorrupted", "QueueHooks", "SchedulingQueue"]
