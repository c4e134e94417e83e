"""Pods and pod templates: what is filled in, what is checked, what an update may change."""
