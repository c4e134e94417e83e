"""NodeResourcesFit: nodes without room for the pod are refused; how full they are decides the score.

`plugin` is the plugin, `filtering` the verdict on a node, `strategies` the score of one resource, `scoring`
the mean over resources, `hints` what wakes a refused pod.
"""

from mooring.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
