"""The Table of a list of objects, and which printer a kind has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from moorage.api import resources
from moorage.embedded.catalog.kinds import Served
from moorage.embedded.catalog.printing import cluster, custom_columns, networking, pods, volumes, workloads
from moorage.embedded.catalog.printing.columns import Printer
from moorage.store.objects import Raw

Include: TypeAlias = Literal["Metadata", "Object", "None"]

PRINTERS: dict[resources.Resource, Printer] = {
    resources.PODS: pods.PODS,
    resources.POD_TEMPLATES: pods.POD_TEMPLATES,
    resources.NODES: cluster.NODES,
    resources.NAMESPACES: cluster.NAMESPACES,
    resources.LEASES: cluster.LEASES,
    resources.PRIORITY_CLASSES: cluster.PRIORITY_CLASSES,
    resources.DEPLOYMENTS: workloads.DEPLOYMENTS,
    resources.REPLICA_SETS: workloads.REPLICA_SETS,
    resources.REPLICATION_CONTROLLERS: workloads.REPLICATION_CONTROLLERS,
    resources.STATEFUL_SETS: workloads.STATEFUL_SETS,
    resources.DAEMON_SETS: workloads.DAEMON_SETS,
    resources.JOBS: workloads.JOBS,
    resources.CRON_JOBS: workloads.CRON_JOBS,
    resources.POD_DISRUPTION_BUDGETS: workloads.DISRUPTION_BUDGETS,
    resources.CONTROLLER_REVISIONS: workloads.CONTROLLER_REVISIONS,
    resources.PERSISTENT_VOLUMES: volumes.VOLUMES,
    resources.PERSISTENT_VOLUME_CLAIMS: volumes.CLAIMS,
    resources.STORAGE_CLASSES: volumes.STORAGE_CLASSES,
    resources.CSI_NODES: volumes.CSI_NODES,
    resources.CSI_DRIVERS: volumes.CSI_DRIVERS,
    resources.VOLUME_ATTACHMENTS: volumes.VOLUME_ATTACHMENTS,
    resources.RESOURCE_CLAIMS: volumes.RESOURCE_CLAIMS,
    resources.RESOURCE_SLICES: volumes.RESOURCE_SLICES,
    resources.RESOURCE_CLAIM_TEMPLATES: volumes.NAME_AND_AGE,
    resources.DEVICE_CLASSES: volumes.NAME_AND_AGE,
    resources.POD_GROUPS: volumes.NAME_AND_AGE,
    resources.SERVICES: networking.SERVICES,
    resources.ENDPOINTS: networking.ENDPOINTS,
    resources.ENDPOINT_SLICES: networking.ENDPOINT_SLICES,
    resources.INGRESSES: networking.INGRESSES,
    resources.INGRESS_CLASSES: networking.INGRESS_CLASSES,
    resources.NETWORK_POLICIES: networking.NETWORK_POLICIES,
    resources.EVENTS: cluster.EVENTS,
    resources.CORE_EVENTS: cluster.EVENTS,
    resources.CONFIG_MAPS: cluster.CONFIG_MAPS,
    resources.SECRETS: cluster.SECRETS,
    resources.SERVICE_ACCOUNTS: cluster.SERVICE_ACCOUNTS,
    resources.ROLE_BINDINGS: cluster.ROLE_BINDINGS,
    resources.CLUSTER_ROLE_BINDINGS: cluster.ROLE_BINDINGS,
    resources.RESOURCE_QUOTAS: cluster.RESOURCE_QUOTAS,
}


def table(
    served: Served,
    raws: Sequence[Raw],
    now: float,
    include: Include = "Metadata",
    list_meta: Raw | None = None,
    *,
    headers: bool = True,
    scale: bool = False,
) -> Raw:
    """Objects in their served form as a Table. `now` is in Unix seconds.

    `include` says how much of each object comes with its row. Further tables of one watch go without
    `headers`: clients keep those of the first. `scale` is for answers of the scale subresource.
    """
    printer = cluster.SCALES if scale else printer_of(served)
    is_pod = served.resource == resources.PODS
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta or {},
        "columnDefinitions": printer.definitions if headers else None,
        "rows": [_row(printer, raw, now, include, is_pod) for raw in raws],
    }


def printer_of(served: Served) -> Printer:
    if served.columns is not None:
        return _custom_printer(_Columns(served.columns))
    return PRINTERS.get(served.resource, cluster.CREATED_AT)


def _row(printer: Printer, raw: Raw, now: float, include: Include, is_pod: bool) -> Raw:
    row: Raw = {"cells": printer.cells(raw, now), "object": _object(raw, include)}
    conditions = pods.row_conditions(raw) if is_pod else None
    if conditions:
        row["conditions"] = conditions
    return row


def _object(raw: Raw, include: Include) -> Any:
    if include == "Object":
        return raw
    if include == "None":
        return None
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": raw["metadata"]}


class _Columns:
    """Declared columns as a key: they are the same as long as it is the same value of the definition."""

    __slots__ = ("declared",)

    def __init__(self, declared: tuple[Raw, ...]) -> None:
        self.declared = declared

    def __hash__(self) -> int:
        return id(self.declared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Columns) and self.declared is other.declared


@lru_cache(maxsize=256)
def _custom_printer(columns: _Columns) -> Printer:
    return custom_columns.printer(columns.declared)
