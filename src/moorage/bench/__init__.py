"""Benchmarks: how long the engine takes for a pod, in multiples of a bare kernel on the same machine."""
