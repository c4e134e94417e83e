"""The kinds that stand-ins read and write, all as plain JSON: they copy templates, which records do not
hold.
"""

from __future__ import annotations

from dataclasses import replace

from mooring.api import resources
from mooring.api.resources import Resource, Unstructured


def plain(resource: Resource) -> Resource:
    """The same resource, with its objects as JSON."""
    return replace(resource, type=Unstructured)


PODS = plain(resources.PODS)
NODES = plain(resources.NODES)
NAMESPACES = plain(resources.NAMESPACES)
SERVICES = plain(resources.SERVICES)
SERVICE_ACCOUNTS = plain(resources.SERVICE_ACCOUNTS)
ENDPOINTS = plain(resources.ENDPOINTS)
ENDPOINT_SLICES = plain(resources.ENDPOINT_SLICES)
REPLICATION_CONTROLLERS = plain(resources.REPLICATION_CONTROLLERS)
REPLICA_SETS = plain(resources.REPLICA_SETS)
DEPLOYMENTS = plain(resources.DEPLOYMENTS)
STATEFUL_SETS = plain(resources.STATEFUL_SETS)
DAEMON_SETS = plain(resources.DAEMON_SETS)
CONTROLLER_REVISIONS = plain(resources.CONTROLLER_REVISIONS)
JOBS = plain(resources.JOBS)
CRON_JOBS = plain(resources.CRON_JOBS)
CLAIMS = plain(resources.PERSISTENT_VOLUME_CLAIMS)
VOLUMES = plain(resources.PERSISTENT_VOLUMES)
STORAGE_CLASSES = plain(resources.STORAGE_CLASSES)
BUDGETS = plain(resources.POD_DISRUPTION_BUDGETS)
LEASES = plain(resources.LEASES)
CSI_NODES = plain(resources.CSI_NODES)
PRIORITY_CLASSES = plain(resources.PRIORITY_CLASSES)
DEFINITIONS = plain(resources.CUSTOM_RESOURCE_DEFINITIONS)

EVENT_KINDS = (resources.EVENTS, resources.CORE_EVENTS)
"""Never followed: they own nothing, and there are many. They go with their namespace."""

FOLLOWED: tuple[Resource, ...] = tuple(plain(r) for r in resources.ALL if r not in EVENT_KINDS)
"""Every built-in kind that garbage collection and namespace deletion look at."""
