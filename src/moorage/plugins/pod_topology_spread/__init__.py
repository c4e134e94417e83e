"""PodTopologySpread: pods of a kind spread evenly over the domains of a topology."""

from moorage.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
