"""DefaultBinder: POST pods/<name>/binding with the pod's UID."""

from __future__ import annotations

from moorage.api.errors import ApiError, NotSent
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.framework.access import Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import BindPlugin
from moorage.framework.status import Status
from moorage.telemetry import logs

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
