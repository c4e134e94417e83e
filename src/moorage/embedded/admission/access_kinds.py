"""The strategies of RBAC kinds and of service accounts. Roles are stored but not enforced."""

from __future__ import annotations

from moorage.api import resources
from moorage.api.resources import Resource
from moorage.embedded.admission import syntax
from moorage.embedded.admission.problems import Problems
from moorage.embedded.admission.strategy import KindStrategy
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_GROUP = "rbac.authorization.k8s.io"


def _default_role(raw: Raw) -> Raw:
    return {"rules": None, **raw}


def _default_role_binding(raw: Raw) -> Raw:
    """Roles, users and groups are of the group of RBAC (pkg/apis/rbac/v1/defaults.go)."""
    raw = {**raw, "roleRef": {"apiGroup": _GROUP, **(raw.get("roleRef") or {})}}
    if raw.get("subjects"):
        raw["subjects"] = [_fill_in_subject(subject) for subject in raw["subjects"]]
    return raw


def _fill_in_subject(subject: Raw) -> Raw:
    return {"apiGroup": _GROUP, **subject} if subject.get("kind") in ("User", "Group") else subject


def _check_role_binding_update(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("roleRef", new.get("roleRef"), old.get("roleRef"), "cannot change roleRef")


def check_account(resource: Resource, raw: Raw, cluster: StoreCluster) -> None:
    """Raise Forbidden if a pod names a ServiceAccount that does not exist (plugin/pkg/admission/serviceaccount).

    The account `default` is not checked: its controller creates it a moment after the namespace.
    """
    if resource != resources.PODS or raw["spec"].get("serviceAccountName") in (None, "default"):
        return
    name, meta = raw["spec"]["serviceAccountName"], raw["metadata"]
    if cluster.find(resources.SERVICE_ACCOUNTS, name, meta["namespace"]) is None:
        why = f'error looking up service account {meta["namespace"]}/{name}: serviceaccount "{name}" not found'
        raise refusals.forbidden(resource, meta["name"], why)


ROLES = KindStrategy(default=_default_role, name=syntax.path_segment, generation=False)
ROLE_BINDINGS = KindStrategy(
    default=_default_role_binding, check_update=_check_role_binding_update, name=syntax.path_segment, generation=False
)
SERVICE_ACCOUNTS = KindStrategy(generation=False)
