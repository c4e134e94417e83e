"""Virtual time and worlds: the event loop and clock under which the real scheduler is simulated."""
