"""For all tests."""

import signal

from hypothesis import settings

# How long an example takes depends on what else the machine does; benchmarks measure that.
settings.register_profile("moorage", deadline=None)
settings.load_profile("moorage")

# A shell without job control starts background jobs with SIGINT ignored, and every process that a test starts inherits
# that. Tests send the signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
