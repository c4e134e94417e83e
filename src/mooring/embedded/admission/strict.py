"""The rules of an API server: every write is read, filled in and checked as kube-apiserver does it.

Kinds without rules of their own, custom ones among them, get the rules of metadata only. The order is the
server's: types (400), defaults, admission (403), validation with all problems at once (422).
"""

from __future__ import annotations

from mooring.api import resources
from mooring.api.resources import Resource
from mooring.embedded.admission import (
    metadata,
    nodes,
    policies,
    records,
    services,
    shapes,
    storage,
    workloads,
)
from mooring.embedded.admission.jobs import CRON_JOBS, JOBS
from mooring.embedded.admission.kinds import Rules
from mooring.embedded.admission.pods import updates
from mooring.embedded.admission.pods.kind import PODS
from mooring.embedded.admission.problems import Problems
from mooring.store.objects import Raw, Stored
from mooring.store.rules import Cluster

_PLAIN = Rules()
_BY_RESOURCE: dict[Resource, Rules] = {
    resources.PODS: PODS,
    resources.NODES: nodes.NODES,
    resources.NAMESPACES: nodes.NAMESPACES,
    resources.SERVICES: services.SERVICES,
    resources.REPLICATION_CONTROLLERS: workloads.REPLICATION_CONTROLLERS,
    resources.REPLICA_SETS: workloads.REPLICA_SETS,
    resources.DEPLOYMENTS: workloads.DEPLOYMENTS,
    resources.STATEFUL_SETS: workloads.STATEFUL_SETS,
    resources.DAEMON_SETS: workloads.DAEMON_SETS,
    resources.JOBS: JOBS,
    resources.CRON_JOBS: CRON_JOBS,
    resources.PERSISTENT_VOLUME_CLAIMS: storage.PERSISTENT_VOLUME_CLAIMS,
    resources.PERSISTENT_VOLUMES: storage.PERSISTENT_VOLUMES,
    resources.STORAGE_CLASSES: storage.STORAGE_CLASSES,
    resources.CSI_NODES: storage.CSI_NODES,
    resources.PRIORITY_CLASSES: policies.PRIORITY_CLASSES,
    resources.POD_DISRUPTION_BUDGETS: policies.POD_DISRUPTION_BUDGETS,
    resources.POD_GROUPS: Rules(first_status={}),
    resources.CONFIG_MAPS: records.CONFIG_MAPS,
    resources.SECRETS: records.SECRETS,
    resources.LEASES: records.LEASES,
    resources.EVENTS: records.EVENTS,
    resources.ROLES: records.ROLES,
    resources.CLUSTER_ROLES: records.ROLES,
    resources.ROLE_BINDINGS: records.ROLE_BINDINGS,
    resources.CLUSTER_ROLE_BINDINGS: records.ROLE_BINDINGS,
}
_BY_NAME = {(resource.group, resource.plural): rules for resource, rules in _BY_RESOURCE.items()}


class StrictRules:
    """For a store behind an API server."""

    def read(self, resource: Resource, raw: Raw) -> Raw:
        """What a client sent, with the types of its kind and without nulls; else BadRequest."""
        shapes.check(resource, raw)
        return shapes.without_nulls(raw)

    def created(self, resource: Resource, raw: Raw, cluster: Cluster, *, keep_status: bool) -> Raw:
        rules = _BY_NAME.get((resource.group, resource.plural), _PLAIN)
        if not keep_status and rules.first_status is not None:
            raw = {**raw, "status": rules.first_status}
        raw["metadata"].setdefault("name", "")
        raw = rules.admit(rules.default(raw), cluster)
        problems, meta = Problems(), raw["metadata"]
        metadata.check(meta, resource.namespaced, rules.name, problems)
        rules.check(raw, problems)
        rules.check_new(raw, problems)
        if problems:
            raise problems.refusal(resource, meta["name"])
        return raw

    def updated(self, current: Stored, raw: Raw, subresource: str, cluster: Cluster) -> Raw:
        resource, old = current.resource, current.raw
        rules = _BY_NAME.get((resource.group, resource.plural), _PLAIN)
        problems = Problems()
        if subresource == "status":
            raw = rules.default_status(raw)
            rules.check_status(raw, old, problems)
        elif subresource == "finalize":
            rules.check(raw, problems)
        else:
            raw = rules.carry(rules.default(raw), old, cluster)
            metadata.check(raw["metadata"], resource.namespaced, rules.name, problems)
            metadata.check_update(raw["metadata"], old["metadata"], problems)
            rules.check(raw, problems)
            if subresource == "resize":
                updates.check_resize(raw["spec"], old["spec"], problems)
            else:
                rules.check_update(raw, old, problems)
        if problems:
            raise problems.refusal(resource, current.name)
        return raw
