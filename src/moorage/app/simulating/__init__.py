"""Simulations with a scheduler configuration: one run, many runs, and what differs between them."""
