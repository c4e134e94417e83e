"""Who is next: active, backoff, parked and gated pods, and the events that move them."""

from mooring.queue.hinting import QueueHooks
from mooring.queue.location import Location, Place
from mooring.queue.scheduling_queue import QueueCorrupted, SchedulingQueue

__all__ = ["Location", "Place", "QueueCorrupted", "QueueHooks", "SchedulingQueue"]
