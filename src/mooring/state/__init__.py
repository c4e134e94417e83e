"""What the scheduler knows of the cluster: object stores, event diffing, the pod cache and the NodeTable."""
