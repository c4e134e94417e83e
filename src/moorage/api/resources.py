"""The kinds that Moorage knows: group, version, plural and record type of each, and custom ones by name.

The client adds request paths beyond the prefix, verbs and subresources.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from moorage.api import core, meta, node, pod, scheduling, storage, workloads


@dataclass(frozen=True, slots=True)
class Unstructured:
    """An object without a record type: the JSON value as received, with typed metadata."""

    raw: dict[str, Any]
    metadata: meta.ObjectMeta = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Converted at once, so that a bad object fails in decoding and not at its first use.
        typed = msgspec.convert({"metadata": self.raw.get("metadata") or {}}, meta.Object)
        object.__setattr__(self, "metadata", typed.metadata)

    def get(self, *path: str, default: Any = None) -> Any:
        """Return the value below the given keys, or the default if the path ends early."""
        value: Any = self.raw
        for step in path:
            if not isinstance(value, dict) or step not in value:
                return default
            value = value[step]
        return value

    @property
    def api_version(self) -> str:
        return str(self.raw.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        return str(self.raw.get("kind") or "")

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version


AnyObject: TypeAlias = meta.Object | Unstructured
ObjectType: TypeAlias = type[meta.Object] | type[Unstructured]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API serves it. `group` is empty for the core group.

    `type` is the record type that a reader wants; it is not part of the identity. With `meta.Object` the API
    server sends metadata only.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: ObjectType = field(compare=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path_prefix(self) -> str:
        """`/api/v1` or `/apis/<group>/<version>`."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def __str__(self) -> str:
        """Return `pods` in the core group, else `<plural>.<version>.<group>`, as in scheduling events."""
        return f"{self.plural}.{self.version}.{self.group}" if self.group else self.plural


def custom(group: str, version: str, plural: str, kind: str, namespaced: bool = True) -> Resource:
    """Return a resource without a record type. Its objects are Unstructured."""
    return Resource(group, version, plural, kind, namespaced, Unstructured)


PODS = Resource("", "v1", "pods", "Pod", True, pod.Pod)
NODES = Resource("", "v1", "nodes", "Node", False, node.Node)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, core.Namespace)
SERVICES = Resource("", "v1", "services", "Service", True, workloads.Service)
REPLICATION_CONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", True, workloads.ReplicationController
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, storage.PersistentVolumeClaim
)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, storage.PersistentVolume)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, storage.StorageClass)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False, storage.CSINode)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False, storage.CSIDriver)
CSI_STORAGE_CAPACITIES = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", True, storage.CSIStorageCapacity
)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, storage.VolumeAttachment
)
POD_DISRUPTION_BUDGETS = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, workloads.PodDisruptionBudget
)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, scheduling.PriorityClass
)
POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True, scheduling.PodGroup)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", True, workloads.ReplicaSet)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", True, workloads.StatefulSet)
DEPLOYMENTS = custom("apps", "v1", "deployments", "Deployment")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, core.Lease)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", True, core.Event)

# Kinds without a record type, which the embedded cluster serves.
CONFIG_MAPS = custom("", "v1", "configmaps", "ConfigMap")
SECRETS = custom("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = custom("", "v1", "serviceaccounts", "ServiceAccount")
ENDPOINTS = custom("", "v1", "endpoints", "Endpoints")
POD_TEMPLATES = custom("", "v1", "podtemplates", "PodTemplate")
LIMIT_RANGES = custom("", "v1", "limitranges", "LimitRange")
RESOURCE_QUOTAS = custom("", "v1", "resourcequotas", "ResourceQuota")
ENDPOINT_SLICES = custom("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
DAEMON_SETS = custom("apps", "v1", "daemonsets", "DaemonSet")
CONTROLLER_REVISIONS = custom("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = custom("batch", "v1", "jobs", "Job")
CRON_JOBS = custom("batch", "v1", "cronjobs", "CronJob")
ROLES = custom("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = custom("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = custom("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = custom("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False)
RESOURCE_CLAIMS = custom("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES = custom("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCE_SLICES = custom("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
DEVICE_CLASSES = custom("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
NETWORK_POLICIES = custom("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
INGRESSES = custom("networking.k8s.io", "v1", "ingresses", "Ingress")
INGRESS_CLASSES = custom("networking.k8s.io", "v1", "ingressclasses", "IngressClass", False)
RUNTIME_CLASSES = custom("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False)
CUSTOM_RESOURCE_DEFINITIONS = custom(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)

CORE_EVENTS = custom("", "v1", "events", "Event")
"""The older form of EVENTS. Not in ALL, because it has the same kind and the same objects."""

ALL: tuple[Resource, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Resource) and value is not CORE_EVENTS
)
"""All resources above except CORE_EVENTS. Their kinds are distinct."""

BY_KIND: dict[str, Resource] = {resource.kind: resource for resource in ALL}
_BY_PLURAL: dict[tuple[str, str], Resource] = {(r.group, r.plural): r for r in ALL}


def by_kind(kind: str, api_version: str | None = None) -> Resource | None:
    """Return the known resource of this kind, and of this apiVersion if given."""
    resource = BY_KIND.get(kind)
    if resource is None or api_version not in (None, resource.api_version):
        return None
    return resource


def by_plural(plural: str, group: str = "") -> Resource | None:
    """Return the known resource with this plural name in this group."""
    return _BY_PLURAL.get((group, plural))
