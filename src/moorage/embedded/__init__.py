"""A Kubernetes cluster inside one process: API server, controllers and kubelets on the store.

Only the server process of `moorage up` imports it.
"""
