"""A stand-in for the kubelets of all nodes: node status and leases, pod phases, usage.

What pods and nodes do is set by annotations, see `scripts`. `kubelets` is the entry point.
"""
