"""Moorage: the Kubernetes scheduler that you program in Python.

Public names only; everything is imported lazily, so that `import moorage.api` stays cheap.
"""

from moorage.api.version import VERSION

TYPE_CHECKING = False  # not from `typing`: `python -m moorage` would take it from the current folder
if TYPE_CHECKING:
    from moorage.app.scheduler import Scheduler
    from moorage.sim.simulation import Simulation

__all__ = ["Scheduler", "Simulation", "__version__"]
__version__ = VERSION


def __getattr__(name: str) -> object:
    if name == "Scheduler":
        from moorage.app.scheduler import Scheduler

        return Scheduler
    if name == "Simulation":
        from moorage.sim.simulation import Simulation

        return Simulation
    raise AttributeError(f"module 'moorage' has no attribute {name!r}")
