"""DefaultBinder: POST pods/<name>/binding with the pod's UID."""

from __future__ import annotations

from mooring.api.errors import ApiError, NotSent
from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.framework.access import Access
from mooring.framework.cycle_state import CycleState
from mooring.framework.points import BindPlugin
from mooring.framework.status import Status
from mooring.telemetry import logs

_log = logs.get(__name__)


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"
    needs = (Access(PODS, ("create",), "binding"),)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """An answer that is lost is raised on (`OutcomeUnknown`): only the scheduler may settle it."""
        _log.info(3, "Attempting to bind pod to node", pod=pod.key, node=node_name)
        try:
            await self.handle.client.bind(pod.name, pod.namespace, pod.uid, node_name)
        except (ApiError, NotSent) as error:
            return Status.error(str(error), cause=error)
        return None
