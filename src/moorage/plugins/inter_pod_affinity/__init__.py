"""InterPodAffinity: place pods near other pods, or away from them.

Follows pkg/scheduler/framework/plugins/interpodaffinity of kube-scheduler."""

from moorage.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
