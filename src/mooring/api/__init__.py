"""Kubernetes objects as typed records, and the algebra on them: quantities, requests, selectors, taints.

Pure: no I/O, no clock. Import the modules (`from mooring.api import quantity`), or names from them.
"""
