"""The scheduler's view of the cluster: object stores, the pod cache and the NodeTable."""
