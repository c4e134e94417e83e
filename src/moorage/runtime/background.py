"""Background tasks of plugins: `run` is restarted after a failure, with a growing pause."""

from __future__ import annotations

from moorage.api.failures import is_being_cancelled, is_cancellation, is_interruption
from moorage.framework.points import Plugin
from moorage.framework.ports import Clock
from moorage.runtime.services import OnFailure
from moorage.telemetry import logs

_log = logs.get(__name__)

FIRST_PAUSE = 1.0
MAX_PAUSE_SECONDS = 300.0
STEADY_SECONDS = 600.0
"""After a `run` of this length a failure counts as the first one."""


async def keep_running(plugin: Plugin, clock: Clock, on_failure: OnFailure) -> None:
    """Run until `run` returns or this task is cancelled."""
    pause = FIRST_PAUSE
    while True:
        began = clock.now()
        try:
            await plugin.run()
            return
        except BaseException as error:
            if is_being_cancelled() or is_cancellation(error) or is_interruption(error):
                raise
            if clock.now() - began >= STEADY_SECONDS:
                pause = FIRST_PAUSE
            _log.error(
                "run() of a plugin failed; restarting it", error=error, stack=True, plugin=plugin.name, seconds=pause
            )
            on_failure(plugin.name, error)
        await clock.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
