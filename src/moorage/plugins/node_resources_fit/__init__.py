"""NodeResourcesFit: nodes without room for the pod are refused; how full they are decides the score.

`args` are its arguments, `plugin` is the plugin with the verdict on a node and what wakes a refused pod,
`scoring` the score of a resource and the mean over resources.
"""

from moorage.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
