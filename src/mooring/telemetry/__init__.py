"""Logging, metrics and tracing. Knows nobody."""
