"""Schedulers on a real API server, one after the other: `moorage bench cluster`."""
