"""Simulations: an event loop and clock in virtual time, and a simulated cluster that the real scheduler runs on."""
