"""What the scheduler knows of the cluster: object stores, the pod cache and the NodeTable."""
