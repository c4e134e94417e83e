"""A stand-in for the kubelets of all nodes: node status and leases, pod phases, usage.

What pods and nodes do is told by annotations, see `scripts`. `kubelets` is the entry point.
"""
