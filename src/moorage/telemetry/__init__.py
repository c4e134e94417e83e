"""Logs, metrics and traces. This package imports no other package of Moorage."""
