"""The command line: parse, call `app`, print. One module per command; what they share is in `printing`."""

from moorage.cli.root import main

__all__ = ["main"]
