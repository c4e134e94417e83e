"""Kubernetes objects as typed records, with quantities, requests, selectors and taints.

The package is pure: it does no I/O and reads no clock. Import its modules (`from moorage.api import
quantity`) or names from them.
"""
