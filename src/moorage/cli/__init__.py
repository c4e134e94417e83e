"""The command line: commands parse their options, call the packages below, and print.

There is one module per command. `printing` has what they share.
"""

from moorage.cli.root import main

__all__ = ["main"]
