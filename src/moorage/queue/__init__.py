"""Which pod is next: active, backoff, parked and gated pods, and the events that move them."""

from moorage.queue.hints import QueueHooks
from moorage.queue.pending import Location, PendingPods, QueueCorrupted
from moorage.queue.places import Place
from moorage.queue.scheduling_queue import SchedulingQueue

__all__ = ["Location", "PendingPods", "Place", "QueueCorrupted", "QueueHooks", "SchedulingQueue"]
