"""Extenders on loopback, measured both ways: Moorage asks one, and Moorage is one."""
