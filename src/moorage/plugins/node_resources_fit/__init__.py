"""NodeResourcesFit: reject nodes without room for the pod, and score nodes by how full they are.

Follows pkg/scheduler/framework/plugins/noderesources/fit.go. `args` holds the arguments, `plugin` the filter and the
queueing hints, `scoring` the score of a resource and the mean over resources, `remedies` the proposals of `explain`."""

from moorage.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
