"""RBAC objects: one cluster role and binding per pack, and the roles that are bound to a namespace."""

from __future__ import annotations

from typing import Any

from mooring.app.deploying.options import DeployOptions
from mooring.app.deploying.rights import Pack, Rule

Json = dict[str, Any]
API = "rbac.authorization.k8s.io"
READER = "extension-apiserver-authentication-reader"
"""The role of every cluster that may read by which authority clients are known."""


def service_account(options: DeployOptions) -> Json:
    """Tokens are mounted by the pod that needs one, and by nobody else who uses the account."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(options, options.name),
        "automountServiceAccountToken": False,
    }


def cluster_roles(options: DeployOptions, packs: list[Pack]) -> list[Json]:
    found: list[Json] = []
    for pack in packs:
        name = f"{options.name}-{pack.name}"
        meta = {"name": name, "labels": options.labels}
        rules = [rule.to_dict() for rule in pack.rules]
        found.append({"apiVersion": f"{API}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules})
        found.append(
            {
                "apiVersion": f"{API}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": meta,
                "roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": name},
                "subjects": [_subject(options)],
            }
        )
    return found


def election_rules(lease: str) -> tuple[Rule, ...]:
    """`create` cannot be limited to a name; everything else is."""
    group = "coordination.k8s.io"
    return (
        Rule(group, ("leases",), ("create",)),
        Rule(group, ("leases",), ("get", "update"), (lease,)),
    )


def election(options: DeployOptions, lease: str, namespace: str) -> list[Json]:
    """The right to lead, where the lease is."""
    name = f"{options.name}-election"
    meta = {"name": name, "namespace": namespace, "labels": options.labels}
    return [
        {
            "apiVersion": f"{API}/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": [rule.to_dict() for rule in election_rules(lease)],
        },
        _role_binding(options, meta, name),
    ]


def authentication_reader(options: DeployOptions) -> Json:
    meta = {
        "name": f"{options.name}-authentication-reader",
        "namespace": "kube-system",
        "labels": options.labels,
    }
    return _role_binding(options, meta, READER)


def metadata(options: DeployOptions, name: str) -> Json:
    return {"name": name, "namespace": options.namespace, "labels": options.labels}


def _role_binding(options: DeployOptions, meta: Json, role: str) -> Json:
    return {
        "apiVersion": f"{API}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": API, "kind": "Role", "name": role},
        "subjects": [_subject(options)],
    }


def _subject(options: DeployOptions) -> Json:
    return {"kind": "ServiceAccount", "name": options.name, "namespace": options.namespace}
