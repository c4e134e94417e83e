"""Which groups, versions, kinds and subresources there are: /api, /apis and below, plain and aggregated.

The answers are made once for each state of the catalog and carry an ETag, so that a client that has them
already gets a 304.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from moorage.embedded.catalog.kinds import VIRTUAL, Catalog, ServedKind, Subresource
from moorage.embedded.http import JSON, ApiRequest, ServerAnswer
from moorage.store.objects import Raw

AGGREGATED = ("v2", "v2beta1")
"""The versions of the aggregated form."""

# Which group goes first where several have a kind of the same name; custom groups come after these.
_ORDER = (
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
)
_LAST = ("metrics.k8s.io",)
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_MATURITY = {"": 2, "beta": 1, "alpha": 0}
Groups: TypeAlias = dict[str, dict[str, list[ServedKind]]]
"""Group to version to kinds, each in the order that clients get."""


def version_rank(version: str) -> tuple[int, int, int, str]:
    """For sorting: v2, v1, v1beta2, v1beta1, v1alpha1, then all that are named otherwise."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return 1, 0, 0, version
    major, maturity, minor = match[1], match[2] or "", match[3] or "0"
    return 0, -_MATURITY[maturity], -(int(major) * 1000 + int(minor)), version


def groups_of(served: Iterable[ServedKind]) -> Groups:
    found: Groups = {}
    for one in served:
        versions = found.setdefault(one.resource.group, {})
        versions.setdefault(one.resource.version, []).append(one)
    ordered = sorted(found, key=_group_rank)
    return {group: {v: found[group][v] for v in sorted(found[group], key=version_rank)} for group in ordered}


def _group_rank(group: str) -> tuple[int, str]:
    if group in _ORDER:
        return _ORDER.index(group), ""
    return len(_ORDER) + (group in _LAST), group


def documents(groups: Groups) -> dict[tuple[str, str], Raw]:
    """Path and aggregated version ("" for plain) to document."""
    core, others = groups.get("", {}), {name: group for name, group in groups.items() if name}
    found: dict[tuple[str, str], Raw] = {
        ("/api", ""): _api_versions(list(core)),
        ("/apis", ""): {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, versions) for name, versions in others.items()],
        },
    }
    for name, versions in groups.items():
        if name:
            found[f"/apis/{name}", ""] = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
        for kinds in versions.values():
            found[kinds[0].resource.path_prefix, ""] = _resource_list(kinds)
    for version in AGGREGATED:
        found["/api", version] = _aggregated({"": core} if core else {}, version)
        found["/apis", version] = _aggregated(others, version)
    return found


def _api_versions(versions: list[str]) -> Raw:
    return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}


def _group(name: str, versions: dict[str, list[ServedKind]]) -> Raw:
    described = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": described, "preferredVersion": described[0]}


def _resource_list(kinds: list[ServedKind]) -> Raw:
    resources = [entry for served in kinds for entry in _resource_entries(served)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].resource.api_version,
        "resources": resources,
    }


def _resource_entries(served: ServedKind) -> Iterable[Raw]:
    resource = served.resource
    entry: Raw = {
        "name": resource.plural,
        "singularName": served.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": served.verbs,
    }
    yield entry | _names(served)
    for sub in served.subresources:
        kind = {"kind": sub.kind, "group": sub.group, "version": sub.version} if sub.kind else {}
        yield {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            **{field: value for field, value in kind.items() if value},
            "verbs": sub.verbs,
        }


def _names(served: ServedKind) -> Raw:
    names = {"shortNames": served.short_names, "categories": served.categories}
    return {field: value for field, value in names.items() if value}


def _aggregated(groups: Groups, version: str) -> Raw:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {"version": v, "resources": [_aggregated_entry(s) for s in kinds], "freshness": "Current"}
                    for v, kinds in versions.items()
                ],
            }
            for name, versions in groups.items()
        ],
    }


def _aggregated_entry(served: ServedKind) -> Raw:
    resource = served.resource
    entry: Raw = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": served.verbs,
        **_names(served),
    }
    if served.subresources:
        entry["subresources"] = [_aggregated_subresource(served, sub) for sub in served.subresources]
    return entry


def _aggregated_subresource(served: ServedKind, sub: Subresource) -> Raw:
    resource = served.resource
    own = _kind(sub.group, sub.version, sub.kind)
    kind = own if sub.kind else _kind(resource.group, resource.version, resource.kind)
    return {"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs}


def _kind(group: str, version: str, kind: str) -> Raw:
    return {"group": group, "version": version, "kind": kind}


class Discovery:
    """The endpoint for all discovery paths."""

    def __init__(self, catalog: Catalog, virtual: Iterable[ServedKind] = VIRTUAL) -> None:
        self._catalog = catalog
        self._virtual = tuple(virtual)
        self._made_of = -1
        self._documents: dict[tuple[str, str], tuple[bytes, str]] = {}

    def answer(self, request: ApiRequest) -> ServerAnswer | None:
        if request.method not in ("GET", "HEAD"):
            return None
        self._refresh()
        path = request.path.removesuffix("/")
        version = _aggregated_version(request.accept) if path in ("/api", "/apis") else ""
        document = self._documents.get((path, version))
        if document is None:
            return None
        body, tag = document
        content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        headers = (("ETag", tag), ("Vary", "Accept"))
        if tag in request.headers.get("if-none-match", ""):
            return ServerAnswer(304, b"", content_type if version else JSON, headers)
        return ServerAnswer(200, body, content_type if version else JSON, headers)

    def _refresh(self) -> None:
        if self._made_of == self._catalog.version:
            return
        groups = groups_of((*self._catalog.all(), *self._virtual))
        self._documents = {key: _with_tag(value) for key, value in documents(groups).items()}
        self._made_of = self._catalog.version


def _aggregated_version(accept: str) -> str:
    """The aggregated form that the client would like best, "" for the plain one."""
    for media in accept.split(","):
        name, *parameters = (part.strip() for part in media.split(";"))
        asked = dict(part.partition("=")[::2] for part in parameters)
        if asked.get("as") == "APIGroupDiscoveryList" and name in (JSON, "*/*") and asked.get("v") in AGGREGATED:
            return asked["v"]
        if name in (JSON, "*/*") and "as" not in asked:
            return ""
    return ""


def _with_tag(document: Raw) -> tuple[bytes, str]:
    body = msgspec.json.encode(document)
    return body, f'"{hashlib.sha256(body).hexdigest().upper()}"'
