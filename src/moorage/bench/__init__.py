"""Benchmarks: the time of the engine per pod, in multiples of a bare kernel on the same machine."""
