"""Kubernetes objects as typed records, and the algebra on them: quantities, requests, selectors, taints.

Pure: no I/O, no clock. Import the modules (`from moorage.api import quantity`), or names from them.
"""
