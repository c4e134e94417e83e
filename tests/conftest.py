"""For all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does; benchmarks measure that.
settings.register_profile("moorage", deadline=None)
settings.load_profile("moorage")
