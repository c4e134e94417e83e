"""The command line: commands parse their options, call the packages below, and print.

There is one module per command. `printing` has what they share. Until the imports are done, Ctrl-C ends the process
with the exit code of an interrupted command instead of a traceback.
"""

import os
import signal
import threading

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""

_on_main = threading.current_thread() is threading.main_thread()
_before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED)) if _on_main else None
try:
    from moorage.cli.root import main
finally:
    if _on_main:
        signal.signal(signal.SIGINT, _before)

__all__ = ["main"]
