"""The Kubernetes object store in memory, and a client of it without a network.

The tests' cluster and simulations run on it as it is, with lenient rules; the embedded API server gives it
strict rules (`embedded.admission`), a disk (`embedded.durable`) and a port (`embedded.apiserver`).
"""
