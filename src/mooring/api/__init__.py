"""Kubernetes objects as typed records, and the algebra on them (quantities, selectors, taints, requests). Pure: no I/O."""
