"""Logging and metrics. Imports no other package of Moorage."""
