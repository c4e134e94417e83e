"""The built-in kinds of the embedded cluster: one row each.

A row holds everything that depends on the kind: how clients name it, its verbs and subresources, the columns
of its Tables, how writes are completed and checked, and the controllers that reconcile it. To add a kind,
name its resource in `api.resources`, describe its fields in `store/types`, and add a row here; columns,
strategy and controllers are optional. A kind has a status subresource if its fields include a status.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from moorage.api import resources as r
from moorage.api.resources import Resource
from moorage.embedded.admission import (
    access_kinds,
    devices,
    jobs,
    network_kinds,
    pods,
    runtime_classes,
    services,
    small_kinds,
    storage,
    workloads,
)
from moorage.embedded.admission.strategy import KindStrategy
from moorage.embedded.admission.strict import StrictRules
from moorage.embedded.catalog.core_events import CORE_EVENTS_VIEW
from moorage.embedded.catalog.crds.definitions import DefinitionAdmission
from moorage.embedded.catalog.kinds import (
    SCALE,
    STATUS,
    VERBS,
    Catalog,
    ScalePaths,
    ServedAdmission,
    ServedKind,
    Subresource,
    View,
)
from moorage.embedded.catalog.printing import cluster, infrastructure
from moorage.embedded.catalog.printing import pods as pod_columns
from moorage.embedded.catalog.printing import workloads as workload_columns
from moorage.embedded.catalog.printing.columns import Printer
from moorage.embedded.controllers.controller import Controller
from moorage.embedded.controllers.cron_jobs import CronJobs
from moorage.embedded.controllers.daemon_sets import DaemonSets
from moorage.embedded.controllers.deployments import Deployments
from moorage.embedded.controllers.disruption import DisruptionBudgets
from moorage.embedded.controllers.endpoints import ServiceEndpoints
from moorage.embedded.controllers.garbage import GarbageCollector, PodGarbage
from moorage.embedded.controllers.jobs import Jobs
from moorage.embedded.controllers.namespaces import Bootstrap, NamespaceDeletion
from moorage.embedded.controllers.node_lifecycle import NodeLifecycle, TaintEviction
from moorage.embedded.controllers.quotas import ResourceQuotas
from moorage.embedded.controllers.replica_sets import ReplicaSets, ReplicationControllers
from moorage.embedded.controllers.stateful_sets import StatefulSets
from moorage.embedded.controllers.volume_binder import VolumeBinder
from moorage.embedded.controllers.volume_claims import ClaimProtection, EphemeralClaims, VolumeProtection
from moorage.store.schemas import has_status

_ENDPOINTS_WARNING = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_WITHOUT_COLLECTION = tuple(verb for verb in VERBS if verb != "deletecollection")
# Deployments and the like have a labelSelector object here, a ReplicationController plain labels.
_SCALE = ScalePaths(selector=("spec", "selector"))
_TOKEN = Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1")
_CONNECTIONS = {"attach": "PodAttachOptions", "exec": "PodExecOptions", "portforward": "PodPortForwardOptions"}
_POD_SUBRESOURCES = (
    *(Subresource(name, ("create", "get"), kind, "", "v1") for name, kind in _CONNECTIONS.items()),
    Subresource("binding", ("create",), "Binding", "", "v1"),
    Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
    Subresource("log", ("get",)),
    Subresource("resize", STATUS.verbs),
)


@dataclass(frozen=True, slots=True)
class BuiltInKind:
    """One row: a kind as clients see it, and how the cluster handles its objects."""

    served: ServedKind
    strategy: KindStrategy | None
    controllers: tuple[type[Controller], ...]


def _kind(
    resource: Resource,
    *short_names: str,
    columns: Printer | None = None,
    strategy: KindStrategy | None = None,
    controllers: tuple[type[Controller], ...] = (),
    in_all: bool = False,
    subresources: tuple[Subresource, ...] = (),
    scale: ScalePaths | None = None,
    verbs: tuple[str, ...] = VERBS,
    categories: tuple[str, ...] = (),
    admission: ServedAdmission | None = None,
    storage: Resource | None = None,
    view: View | None = None,
    deprecation: str = "",
) -> BuiltInKind:
    """`in_all` adds the kind to the category that `kubectl get all` shows."""
    if has_status(resource.api_version, resource.kind):
        subresources = (*subresources, STATUS)
    served = ServedKind(
        resource,
        resource.kind.lower(),
        short_names,
        verbs=verbs,
        subresources=(SCALE, *subresources) if scale is not None else subresources,
        categories=("all",) if in_all else categories,
        storage=storage,
        view=view,
        admission=admission,
        scale=scale,
        printer=columns,
        deprecated=bool(deprecation),
        warning=deprecation,
    )
    return BuiltInKind(served, strategy, controllers)


def _workload(
    resource: Resource, short: str, columns: Printer, strategy: KindStrategy, controller: type[Controller]
) -> BuiltInKind:
    """Return the row of a kind with replicas."""
    return _kind(
        resource, short, columns=columns, strategy=strategy, controllers=(controller,), in_all=True, scale=_SCALE
    )


_CORE = (
    _kind(r.CONFIG_MAPS, "cm", columns=cluster.CONFIG_MAPS, strategy=small_kinds.CONFIG_MAPS),
    _kind(
        r.ENDPOINTS,
        "ep",
        columns=infrastructure.ENDPOINTS,
        strategy=network_kinds.ENDPOINTS,
        deprecation=_ENDPOINTS_WARNING,
    ),
    _kind(r.CORE_EVENTS, "ev", columns=cluster.EVENTS, storage=r.EVENTS, view=CORE_EVENTS_VIEW),
    _kind(r.LIMIT_RANGES, "limits", strategy=small_kinds.LIMIT_RANGES),
    _kind(
        r.NAMESPACES,
        "ns",
        columns=cluster.NAMESPACES,
        strategy=small_kinds.NAMESPACES,
        controllers=(Bootstrap, NamespaceDeletion),
        verbs=_WITHOUT_COLLECTION,
        subresources=(Subresource("finalize", ("update",)),),
    ),
    _kind(r.NODES, "no", columns=cluster.NODES, strategy=small_kinds.NODES, controllers=(NodeLifecycle, TaintEviction)),
    _kind(
        r.PERSISTENT_VOLUME_CLAIMS,
        "pvc",
        columns=infrastructure.CLAIMS,
        strategy=storage.PERSISTENT_VOLUME_CLAIMS,
        controllers=(VolumeBinder, ClaimProtection, EphemeralClaims),
    ),
    _kind(
        r.PERSISTENT_VOLUMES,
        "pv",
        columns=infrastructure.VOLUMES,
        strategy=storage.PERSISTENT_VOLUMES,
        controllers=(VolumeProtection,),
    ),
    _kind(
        r.PODS,
        "po",
        columns=pod_columns.PODS,
        strategy=pods.PODS,
        controllers=(PodGarbage,),
        in_all=True,
        subresources=_POD_SUBRESOURCES,
    ),
    _kind(r.POD_TEMPLATES, columns=pod_columns.POD_TEMPLATES, strategy=workloads.POD_TEMPLATES),
    _workload(
        r.REPLICATION_CONTROLLERS,
        "rc",
        workload_columns.REPLICATION_CONTROLLERS,
        workloads.REPLICATION_CONTROLLERS,
        ReplicationControllers,
    ),
    _kind(
        r.RESOURCE_QUOTAS,
        "quota",
        columns=cluster.RESOURCE_QUOTAS,
        strategy=small_kinds.RESOURCE_QUOTAS,
        controllers=(ResourceQuotas,),
    ),
    _kind(r.SECRETS, columns=cluster.SECRETS, strategy=small_kinds.SECRETS),
    _kind(
        r.SERVICE_ACCOUNTS,
        "sa",
        columns=cluster.NAME_AND_AGE,
        strategy=access_kinds.SERVICE_ACCOUNTS,
        subresources=(_TOKEN,),
    ),
    _kind(
        r.SERVICES,
        "svc",
        columns=infrastructure.SERVICES,
        strategy=services.SERVICES,
        controllers=(ServiceEndpoints,),
        in_all=True,
    ),
)
_WORKLOADS = (
    _kind(
        r.CONTROLLER_REVISIONS, columns=workload_columns.CONTROLLER_REVISIONS, strategy=workloads.CONTROLLER_REVISIONS
    ),
    _kind(
        r.DAEMON_SETS,
        "ds",
        columns=workload_columns.DAEMON_SETS,
        strategy=workloads.DAEMON_SETS,
        controllers=(DaemonSets,),
        in_all=True,
    ),
    _workload(r.DEPLOYMENTS, "deploy", workload_columns.DEPLOYMENTS, workloads.DEPLOYMENTS, Deployments),
    _workload(r.REPLICA_SETS, "rs", workload_columns.REPLICA_SETS, workloads.REPLICA_SETS, ReplicaSets),
    _workload(r.STATEFUL_SETS, "sts", workload_columns.STATEFUL_SETS, workloads.STATEFUL_SETS, StatefulSets),
    _kind(
        r.CRON_JOBS,
        "cj",
        columns=workload_columns.CRON_JOBS,
        strategy=jobs.CRON_JOBS,
        controllers=(CronJobs,),
        in_all=True,
    ),
    _kind(r.JOBS, columns=workload_columns.JOBS, strategy=jobs.JOBS, controllers=(Jobs,), in_all=True),
)
_OTHERS = (
    _kind(
        r.CUSTOM_RESOURCE_DEFINITIONS, "crd", "crds", categories=("api-extensions",), admission=DefinitionAdmission()
    ),
    _kind(r.LEASES, columns=cluster.LEASES, strategy=small_kinds.LEASES),
    _kind(r.ENDPOINT_SLICES, columns=infrastructure.ENDPOINT_SLICES, strategy=network_kinds.ENDPOINT_SLICES),
    _kind(r.EVENTS, "ev", columns=cluster.EVENTS, strategy=small_kinds.EVENTS),
    _kind(r.INGRESS_CLASSES, columns=infrastructure.INGRESS_CLASSES, strategy=network_kinds.INGRESS_CLASSES),
    _kind(r.INGRESSES, "ing", columns=infrastructure.INGRESSES, strategy=network_kinds.INGRESSES),
    _kind(
        r.NETWORK_POLICIES, "netpol", columns=infrastructure.NETWORK_POLICIES, strategy=network_kinds.NETWORK_POLICIES
    ),
    _kind(r.RUNTIME_CLASSES, columns=infrastructure.RUNTIME_CLASSES, strategy=runtime_classes.RUNTIME_CLASSES),
    _kind(
        r.POD_DISRUPTION_BUDGETS,
        "pdb",
        columns=workload_columns.DISRUPTION_BUDGETS,
        strategy=small_kinds.POD_DISRUPTION_BUDGETS,
        controllers=(DisruptionBudgets,),
    ),
    _kind(r.CLUSTER_ROLE_BINDINGS, columns=cluster.ROLE_BINDINGS, strategy=access_kinds.ROLE_BINDINGS),
    _kind(r.CLUSTER_ROLES, strategy=access_kinds.ROLES),
    _kind(r.ROLE_BINDINGS, columns=cluster.ROLE_BINDINGS, strategy=access_kinds.ROLE_BINDINGS),
    _kind(r.ROLES, strategy=access_kinds.ROLES),
    _kind(r.DEVICE_CLASSES, columns=cluster.NAME_AND_AGE),
    _kind(r.RESOURCE_CLAIMS, columns=infrastructure.RESOURCE_CLAIMS, strategy=devices.RESOURCE_CLAIMS),
    _kind(r.RESOURCE_CLAIM_TEMPLATES, columns=cluster.NAME_AND_AGE, strategy=devices.RESOURCE_CLAIM_TEMPLATES),
    _kind(r.RESOURCE_SLICES, columns=infrastructure.RESOURCE_SLICES),
    _kind(r.PRIORITY_CLASSES, "pc", columns=cluster.PRIORITY_CLASSES, strategy=small_kinds.PRIORITY_CLASSES),
    _kind(r.POD_GROUPS, columns=cluster.NAME_AND_AGE, strategy=KindStrategy(first_status={})),
    _kind(r.CSI_DRIVERS, columns=infrastructure.CSI_DRIVERS, strategy=storage.CSI_DRIVERS),
    _kind(r.CSI_NODES, columns=infrastructure.CSI_NODES, strategy=storage.CSI_NODES),
    _kind(r.CSI_STORAGE_CAPACITIES, strategy=storage.CSI_STORAGE_CAPACITIES),
    _kind(r.STORAGE_CLASSES, "sc", columns=infrastructure.STORAGE_CLASSES, strategy=storage.STORAGE_CLASSES),
    _kind(r.VOLUME_ATTACHMENTS, columns=infrastructure.VOLUME_ATTACHMENTS, strategy=storage.VOLUME_ATTACHMENTS),
)

BUILT_IN: tuple[BuiltInKind, ...] = (*_CORE, *_WORKLOADS, *_OTHERS)
CONTROLLERS: tuple[type[Controller], ...] = (
    *chain.from_iterable(kind.controllers for kind in BUILT_IN),
    GarbageCollector,
)
"""The controllers of all kinds, and the one that follows every kind."""
_STRATEGIES = {kind.served.resource: kind.strategy for kind in BUILT_IN if kind.strategy is not None}


def built_in_catalog() -> Catalog:
    """Return what a server without CustomResourceDefinitions serves."""
    return Catalog(kind.served for kind in BUILT_IN)


def strict_rules() -> StrictRules:
    """Return the write rules of an API server's store."""
    return StrictRules(_STRATEGIES)
