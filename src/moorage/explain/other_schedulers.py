"""Signs that a scheduler runs: its lease, and its events about a pod.

A pod that names a scheduler that does not run waits for ever, and no event says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.core import Event, Lease
from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, LEASES
from moorage.app.clock import SystemClock
from moorage.client.connection import connect, default_user_agent, find
from moorage.framework.ports import ApiClient

MAX_EVENTS = 500


async def signs_of(pod: Pod, kubeconfig: str = "", context: str = "") -> str:
    """Return what shows that the scheduler of a pod runs, as a sentence, from the API server of the credentials."""
    credentials = await find(kubeconfig, context)
    client = connect(credentials, SystemClock(), user_agent=default_user_agent("explain"))
    try:
        return await read_signs(client, pod)
    finally:
        await client.close()


async def read_signs(client: ApiClient, pod: Pod) -> str:
    """Return what leases and events show about the scheduler of a pod."""
    name = pod.scheduler_name
    try:
        leases = (await client.list(LEASES, field_selector=f"metadata.name={name}")).items
        events = (await client.list(EVENTS, namespace=pod.namespace, limit=MAX_EVENTS)).items
    except MoorageError as error:
        return f"Whether {name} runs is not known: leases and events cannot be read ({error})."
    return _lease_of(name, leases) or _event_of(pod, events) or f"No lease or event shows that {name} runs."


def _lease_of(name: str, leases: Iterable[object]) -> str:
    for lease in leases:
        if isinstance(lease, Lease) and lease.name == name and lease.spec.holder_identity:
            renewed = f", renewed at {lease.spec.renew_time}" if lease.spec.renew_time else ""
            return f"The lease {lease.key} is held by {lease.spec.holder_identity}{renewed}."
    return ""


def _event_of(pod: Pod, events: Iterable[object]) -> str:
    for event in events:
        if isinstance(event, Event) and event.reporting_controller == pod.scheduler_name:
            about = "this pod" if event.regarding.uid == pod.uid else f"{event.regarding.kind} {event.regarding.name}"
            return f"An event about {about} shows that {pod.scheduler_name} has run: {event.reason}: {event.note}"
    return ""
