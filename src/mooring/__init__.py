"""Mooring: the Kubernetes scheduler that you program in Python.

Public names only; everything is imported lazily, so that `import mooring.api` stays cheap.
"""

TYPE_CHECKING = False  # not from `typing`: `python -m mooring` would take it from the current folder
if TYPE_CHECKING:
    from mooring.app.scheduler import Scheduler
    from mooring.app.simulating.simulation import Simulation

__all__ = ["Scheduler", "Simulation", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "Scheduler":
        from mooring.app.scheduler import Scheduler

        return Scheduler
    if name == "Simulation":
        from mooring.app.simulating.simulation import Simulation

        return Simulation
    raise AttributeError(f"module 'mooring' has no attribute {name!r}")
