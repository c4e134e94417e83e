"""Least privilege: from what the enabled plugins declare to RBAC rules and objects, in packs that can be left out.

The base is what every scheduler does. Everything else comes from the plugins' `needs`, so that a disabled plugin leaves
no right behind and one of your own gets a role of its own. No pack grants what the base has. Each pack is one cluster
role with its binding; beside them are the roles that are bound to a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moorage.app.configuration import Configuration
from moorage.framework.access import VERBS, Access
from moorage.manifests.options import DeployOptions

BASE = "base"
PACK_OF = {
    "DefaultBinder": BASE,
    "InterPodAffinity": BASE,
    "PodTopologySpread": "spread-defaults",
    "DefaultPreemption": "preemption",
    "VolumeRestrictions": "volumes",
    "NodeVolumeLimits": "volumes",
    "VolumeBinding": "volumes",
    "VolumeZone": "volumes",
    "DynamicResources": "dra",
    "GangScheduling": "gangs",
}
"""Built-in plugin → pack; any other plugin has a pack named after it."""

Right = tuple[str, str, str]
"""(API group, resource with subresource, verb)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on one or more resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Names of the objects that the rule is limited to."""

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"apiGroups": [self.group], "resources": list(self.resources)}
        if self.names:
            found["resourceNames"] = list(self.names)
        return {**found, "verbs": list(self.verbs)}

    def rights(self) -> set[Right]:
        return {(self.group, resource, verb) for resource in self.resources for verb in self.verbs}


@dataclass(frozen=True, slots=True)
class Pack:
    """The rules of one cluster role."""

    name: str
    rules: tuple[Rule, ...]

    def rights(self) -> set[Right]:
        return {right for rule in self.rules for right in rule.rights()}


ALWAYS: frozenset[Right] = frozenset(
    {
        *(("", "nodes", verb) for verb in ("list", "watch")),
        *(("", "pods", verb) for verb in ("get", "list", "watch")),
        ("", "pods/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
    }
)
"""Node table and queue; `get` resolves the unknown outcome of a bind; condition and nomination; events."""

DELEGATED_AUTH = Pack(
    "delegated-auth",
    (
        Rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
        Rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    ),
)
"""Needed to ask the API server who may read the metrics."""


READING: frozenset[Right] = frozenset(
    ("", resource, verb) for resource in ("nodes", "pods") for verb in ("list", "watch")
)
"""The rights that an extender needs; kube-scheduler does all writes."""


def packs(
    configuration: Configuration, always: frozenset[Right] = ALWAYS, more: tuple[Pack, ...] = (DELEGATED_AUTH,)
) -> list[Pack]:
    """Return the cluster roles that a configuration needs; the base first, then by name."""
    wanted: dict[str, set[Right]] = {BASE: set(always)}
    for name in enabled(configuration):
        pack = PACK_OF.get(name, f"plugin-{kebab(name)}")
        needs = configuration.registry[name].needs
        wanted.setdefault(pack, set()).update(right for need in needs for right in rights_of(need))
    base = wanted.pop(BASE)
    others = {name: rights - base for name, rights in sorted(wanted.items())}
    return [
        Pack(BASE, as_rules(base)),
        *more,
        *(Pack(name, as_rules(rights)) for name, rights in others.items() if rights),
    ]


def enabled(configuration: Configuration) -> list[str]:
    """Return the plugins of all profiles, each once."""
    names = [name for profile in configuration.profiles for name in profile.plugin_names]
    return [name for name in dict.fromkeys(names) if name in configuration.registry]


def rights_of(need: Access) -> Iterable[Right]:
    resource = f"{need.resource.plural}/{need.subresource}" if need.subresource else need.resource.plural
    return ((need.resource.group, resource, verb) for verb in need.verbs)


def as_rules(rights: Iterable[Right]) -> tuple[Rule, ...]:
    """Combine rights into few rules: resources of a group with the same verbs share a rule."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for group, resource, verb in rights:
        verbs.setdefault((group, resource), set()).add(verb)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), found in sorted(verbs.items()):
        ordered = tuple(sorted(found, key=_place))
        together.setdefault((group, ordered), []).append(resource)
    return tuple(Rule(group, tuple(resources), verbs) for (group, verbs), resources in together.items())


def _place(verb: str) -> tuple[int, str]:
    return (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)


def kebab(name: str) -> str:
    """Return the name of a role: `NetworkTraffic` → `network-traffic`, without invalid characters."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return re.sub(r"[^a-z0-9]+", "-", spaced).strip("-") or "unnamed"


Json = dict[str, Any]
API = "rbac.authorization.k8s.io"
READER = "extension-apiserver-authentication-reader"
"""The role of every cluster that may read the client CA."""


def service_account(options: DeployOptions) -> Json:
    """Return an account without automatic tokens: only the pod that needs a token mounts it."""
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
    """Return the rules for a lease; all verbs but `create` can be limited to its name."""
    group = "coordination.k8s.io"
    return (Rule(group, ("leases",), ("create",)), Rule(group, ("leases",), ("get", "update"), (lease,)))


def election(options: DeployOptions, lease: str, namespace: str) -> list[Json]:
    """Return the role for leader election, in the namespace of the lease."""
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
    meta = {"name": f"{options.name}-authentication-reader", "namespace": "kube-system", "labels": options.labels}
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
