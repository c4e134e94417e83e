"""Call a plugin, and report failures with plugin, extension point, pod and node.

Every result of a plugin passes through here: an exception or a wrong type becomes an Error status that names all four,
is logged with its traceback, and fails that attempt only."""

from __future__ import annotations

import inspect
from typing import Any

from moorage.api.failures import failure_text, is_cancellation, is_interruption, repr_of
from moorage.api.pod import Pod
from moorage.api.problems import without_addresses
from moorage.framework.points import Plugin
from moorage.framework.status import SUCCESS, Code, Status
from moorage.runtime.lifting import NodeFailure
from moorage.runtime.stopwatch import AttemptOverdue
from moorage.telemetry import logs
from moorage.telemetry.metrics import METRICS

_log = logs.get(__name__)

_PREFIX = {
    "Filter": 'running "{plugin}" filter plugin: ',
    "Score": 'running Score plugins: plugin "{plugin}" failed with: ',
    "NormalizeScore": 'running Normalize on Score plugins: plugin "{plugin}" failed with: ',
}


def prefix(point: str, plugin: str) -> str:
    """Return the prefix of kube-scheduler's error messages at that point."""
    return _PREFIX.get(point, 'running {point} plugin "{plugin}": ').format(point=point, plugin=plugin)


def failed(plugin: Plugin, point: str, pod: Pod, error: BaseException, node: str = "") -> Status:
    """Return the Error status for an exception of a plugin. An interruption of the process and the end of an
    overdue attempt are raised again."""
    if isinstance(error, NodeFailure):
        node, error = error.node, error.__cause__ or error
    if is_interruption(error) or isinstance(error, AttemptOverdue):
        raise error
    _log.error("Plugin failed", error=error, stack=True, plugin=plugin.name, point=point, pod=pod.key, node=node)
    _count(plugin, point)
    where = f'pod "{pod.key}"' + (f', node "{node}"' if node else "")
    text = without_addresses(f"{prefix(point, plugin.name)}{where}: {failure_text(error)}")
    return Status(Code.ERROR, (text,), plugin.name, cause=error)


def _count(plugin: Plugin, point: str) -> None:
    handle = getattr(plugin, "handle", None)  # absent in a plugin whose constructor did without
    metrics = handle.shared(METRICS, lambda: None) if handle is not None else None
    if metrics is not None:
        metrics.plugin_failures.inc(plugin.name, point)


def checked(plugin: Plugin, point: str, pod: Pod, answer: Any, node: str = "") -> Status:
    """Return a plugin's answer as a Status with its name; an Error gets the point's prefix."""
    if answer is None:
        return SUCCESS
    if not isinstance(answer, Status):
        return failed(plugin, point, pod, TypeError(f"expected a Status or None, got {repr_of(answer)}"), node)
    if answer.code is Code.SUCCESS:
        return SUCCESS
    if answer.code is Code.ERROR:
        text = prefix(point, plugin.name) + answer.message
        return Status(Code.ERROR, (text,), plugin.name, cause=answer.cause)
    return answer.by(plugin.name)


def unexpected(plugin: Plugin, point: str, pod: Pod, status: Status, node: str = "") -> Status:
    """Return the Error for a code that is not allowed at this point."""
    return failed(
        plugin, point, pod, ValueError(f"{status.code.label} is not a valid answer to {point}: {status.message}"), node
    )


async def maybe_await(answer: Any) -> Any:
    """Await the result if the hook is `async def`; hooks of the binding cycle may be either."""
    return await answer if inspect.isawaitable(answer) else answer


async def call_async(plugin: Plugin, point: str, pod: Pod, hook: Any, *args: Any, node: str = "") -> Status:
    """Call a hook of the binding cycle and turn exceptions into a Status; cancellation is re-raised."""
    try:
        answer = await maybe_await(hook(*args))
    except BaseException as error:
        if is_cancellation(error):
            raise
        return failed(plugin, point, pod, error, node)
    return checked(plugin, point, pod, answer, node)
