"""`moorage up`: the embedded cluster as processes, from its description to a kubeconfig."""
