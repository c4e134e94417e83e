"""Mooring: the Kubernetes scheduler that you program in Python.

Public names only; everything is imported lazily, so that `import mooring.api` stays cheap.
"""

__version__ = "0.1.0"
