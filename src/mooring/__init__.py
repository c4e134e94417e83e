"""Mooring: the Kubernetes scheduler that you program in Python.

Public names only; everything is imported lazily, so that `import mooring.api` stays cheap.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mooring.app.scheduler import Scheduler

__all__ = ["Scheduler", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Scheduler":
        from mooring.app.scheduler import Scheduler

        return Scheduler
    raise AttributeError(f"module 'mooring' has no attribute {name!r}")
