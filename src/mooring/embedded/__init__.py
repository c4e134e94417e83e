"""A Kubernetes cluster inside the process: the object store and its in-process client."""
