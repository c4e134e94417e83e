"""PodTopologySpread: spread matching pods evenly over the domains of a topology (KEP-895).

Follows pkg/scheduler/framework/plugins/podtopologyspread of kube-scheduler."""

from moorage.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
