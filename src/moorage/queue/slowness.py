"""Which pods are tried behind all others, and how long they wait, because their attempts are slow.

One pod may hold up the scheduler twice. After that it is tried only when no other pod is active, and a slow pod waits
ten times as long as its attempt took, doubled with each slow attempt in a row. Its namespace is set back with it for a
while, so that a tenant cannot start again with a new pod.
"""

from __future__ import annotations

from moorage.framework.events import QueuedPod

MIN_SLOW_ATTEMPTS = 2
"""Slow attempts in a row after which a pod is tried behind all others."""
REST = 10.0
"""How many times the length of its slow attempt a pod waits at least."""
MAX_WAIT_SECONDS = 300.0
NAMESPACE_SECONDS = 300.0
"""How long after the last such attempt the other pods of a namespace are tried behind those of other namespaces."""


def wait_seconds(info: QueuedPod) -> float:
    """Return the minimum backoff of a pod after its last attempt; 0 if that was not slow."""
    if not info.slow_attempts:
        return 0.0
    return min(REST * info.slow_seconds * 2.0 ** min(info.slow_attempts - 1, 16), MAX_WAIT_SECONDS)


class SlowPods:
    """Knows which pods are tried behind all others."""

    def __init__(self) -> None:
        self._namespaces: dict[str, float] = {}
        """Namespace → when the last pod of it was set back."""

    def note(self, info: QueuedPod, now: float) -> None:
        """Set the namespace of a pod back if the pod itself is."""
        if is_slow(info):
            kept = {name: at for name, at in self._namespaces.items() if now - at < NAMESPACE_SECONDS}
            kept[info.pod.namespace] = now
            self._namespaces = kept

    def is_behind(self, info: QueuedPod, now: float) -> bool:
        """Return whether a pod is tried behind the others."""
        if is_slow(info):
            return True
        if not self._namespaces:
            return False
        at = self._namespaces.get(info.pod.namespace)
        return at is not None and now - at < NAMESPACE_SECONDS


def is_slow(info: QueuedPod) -> bool:
    """Return whether the last attempts of a pod were slow."""
    return info.slow_attempts >= MIN_SLOW_ATTEMPTS
