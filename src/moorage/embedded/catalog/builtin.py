"""The built-in kinds: how clients name them, what they can do with them, and their subresources."""

from __future__ import annotations

from moorage.api import resources as r
from moorage.api.resources import Resource
from moorage.embedded.catalog.crds.definitions import DefinitionRules
from moorage.embedded.catalog.kinds import (
    CORE_EVENTS_VIEW,
    SCALE,
    STATUS,
    Catalog,
    ScalePaths,
    Served,
    Subresource,
)

_ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_WITHOUT_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")
_POD_SUBRESOURCES = (
    Subresource("binding", ("create",), "Binding", "", "v1"),
    Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
    Subresource("log", ("get",)),
    Subresource("resize", STATUS.verbs),
    STATUS,
)
# A selector as a labelSelector object; ReplicationController has plain labels.
_BY_SELECTOR = ScalePaths(selector=("spec", "selector"))


def _kind(
    resource: Resource,
    *short_names: str,
    subresources: tuple[Subresource, ...] = (),
    all_: bool = False,
    scale: ScalePaths | None = None,
) -> Served:
    """`all_` puts a kind into the category that `kubectl get all` shows."""
    if scale is not None:
        subresources = (SCALE, *subresources)
    return Served(
        resource,
        resource.kind.lower(),
        short_names,
        subresources=subresources,
        categories=("all",) if all_ else (),
        scale=scale,
    )


def _workload(resource: Resource, *short_names: str) -> Served:
    """A kind with replicas."""
    return _kind(resource, *short_names, subresources=(STATUS,), all_=True, scale=_BY_SELECTOR)


_CORE = (
    _kind(r.CONFIG_MAPS, "cm"),
    Served(r.ENDPOINTS, "endpoints", ("ep",), deprecated=True, warning=_ENDPOINTS),
    Served(r.CORE_EVENTS, "event", ("ev",), storage=r.EVENTS, view=CORE_EVENTS_VIEW),
    _kind(r.LIMIT_RANGES, "limits"),
    Served(
        r.NAMESPACES,
        "namespace",
        ("ns",),
        verbs=_WITHOUT_COLLECTION,
        subresources=(Subresource("finalize", ("update",)), STATUS),
    ),
    _kind(r.NODES, "no", subresources=(STATUS,)),
    _kind(r.PERSISTENT_VOLUME_CLAIMS, "pvc", subresources=(STATUS,)),
    _kind(r.PERSISTENT_VOLUMES, "pv", subresources=(STATUS,)),
    _kind(r.PODS, "po", subresources=_POD_SUBRESOURCES, all_=True),
    _kind(r.POD_TEMPLATES),
    _workload(r.REPLICATION_CONTROLLERS, "rc"),
    _kind(r.RESOURCE_QUOTAS, "quota", subresources=(STATUS,)),
    _kind(r.SECRETS),
    _kind(
        r.SERVICE_ACCOUNTS,
        "sa",
        subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1"),),
    ),
    _kind(r.SERVICES, "svc", subresources=(STATUS,), all_=True),
)
_WORKLOADS = (
    _kind(r.CONTROLLER_REVISIONS),
    _kind(r.DAEMON_SETS, "ds", subresources=(STATUS,), all_=True),
    _workload(r.DEPLOYMENTS, "deploy"),
    _workload(r.REPLICA_SETS, "rs"),
    _workload(r.STATEFUL_SETS, "sts"),
    _kind(r.CRON_JOBS, "cj", subresources=(STATUS,), all_=True),
    _kind(r.JOBS, subresources=(STATUS,), all_=True),
)
_OTHERS = (
    Served(
        r.CUSTOM_RESOURCE_DEFINITIONS,
        "customresourcedefinition",
        ("crd", "crds"),
        subresources=(STATUS,),
        categories=("api-extensions",),
        rules=DefinitionRules(),
    ),
    _kind(r.LEASES),
    _kind(r.ENDPOINT_SLICES),
    _kind(r.EVENTS, "ev"),
    _kind(r.INGRESS_CLASSES),
    _kind(r.INGRESSES, "ing", subresources=(STATUS,)),
    _kind(r.NETWORK_POLICIES, "netpol"),
    _kind(r.POD_DISRUPTION_BUDGETS, "pdb", subresources=(STATUS,)),
    _kind(r.CLUSTER_ROLE_BINDINGS),
    _kind(r.CLUSTER_ROLES),
    _kind(r.ROLE_BINDINGS),
    _kind(r.ROLES),
    _kind(r.DEVICE_CLASSES),
    _kind(r.RESOURCE_CLAIMS, subresources=(STATUS,)),
    _kind(r.RESOURCE_CLAIM_TEMPLATES),
    _kind(r.RESOURCE_SLICES),
    _kind(r.PRIORITY_CLASSES, "pc"),
    _kind(r.POD_GROUPS, subresources=(STATUS,)),
    _kind(r.CSI_DRIVERS),
    _kind(r.CSI_NODES),
    _kind(r.CSI_STORAGE_CAPACITIES),
    _kind(r.STORAGE_CLASSES, "sc"),
    _kind(r.VOLUME_ATTACHMENTS, subresources=(STATUS,)),
)

BUILT_IN: tuple[Served, ...] = (*_CORE, *_WORKLOADS, *_OTHERS)


def built_in_catalog() -> Catalog:
    """What a server without CustomResourceDefinitions serves."""
    return Catalog(BUILT_IN)
