"""Kinds that are served but not stored: metrics.k8s.io/v1beta1, and reviews of identity and access.

`kubectl top` reads the metrics. They come from a `UsageSource`, a port that the kubelets implement; nodes and
pods that it does not know yet are left out, as a metrics server does.

Reviews answer who a user is and what the user may do. Every authenticated user may do everything: roles and
bindings are stored but not evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import msgspec

from moorage.api import resources
from moorage.api.errors import ApiError, NotFound
from moorage.api.resources import Resource
from moorage.embedded import protobuf
from moorage.embedded.catalog import kinds
from moorage.embedded.catalog.kinds import NODE_METRICS, POD_METRICS
from moorage.embedded.http import ANONYMOUS, ApiRequest, ServerAnswer, json_answer
from moorage.serving.certificates import User
from moorage.store import refusals
from moorage.store.objects import Raw, Stored, timestamp
from moorage.store.store import Store

WINDOW = "15s"
"""Over how long the usage is said to be measured."""
_PREFIX = NODE_METRICS.path_prefix
Tokens: TypeAlias = Callable[[str], User | None]
"""Whose token it is; None for one that is not known."""

_EVERYTHING_REASON = "every authenticated user may do everything"
_UNAUTHENTICATED = "system:unauthenticated"
_ATTRIBUTES = ("resourceAttributes", "nonResourceAttributes")
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_ALL_RULES: Raw = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """CPU and memory in use."""

    cpu_cores: float
    memory_bytes: int


class UsageSource(Protocol):
    """Returns the current usage, or None if it is unknown (no such object, not running, not measured yet)."""

    def node(self, name: str) -> MeasuredUsage | None: ...

    def pod(self, namespace: str, name: str) -> Mapping[str, MeasuredUsage] | None:
        """Usage by container."""
        ...


class Metrics:
    """The endpoint of metrics.k8s.io. `wall` gives Unix seconds."""

    def __init__(self, store: Store, usage: UsageSource, wall: Callable[[], float]) -> None:
        self._store = store
        self._usage = usage
        self._wall = wall

    def answer(self, request: ApiRequest) -> ServerAnswer | None:
        if not request.path.startswith(f"{_PREFIX}/"):
            return None
        parts = request.path.removeprefix(f"{_PREFIX}/").rstrip("/").split("/")
        found = self._metrics(parts, request)
        if found is not None and request.method not in ("GET", "HEAD"):
            raise _read_only()
        return None if found is None else json_answer(found)

    def _metrics(self, parts: list[str], request: ApiRequest) -> Raw | None:
        match parts:
            case ["nodes"]:
                return self._nodes(request)
            case ["nodes", name]:
                return self._node(name)
            case ["pods"]:
                return self._pods(request, "")
            case ["namespaces", namespace, "pods"]:
                return self._pods(request, namespace)
            case ["namespaces", namespace, "pods", name]:
                return self._pod(namespace, name)
            case _:
                return None

    def _nodes(self, request: ApiRequest) -> Raw:
        found = self._listed(resources.NODES, request, "")
        return _list("NodeMetricsList", [m for m in map(self._of_node, found) if m is not None])

    def _node(self, name: str) -> Raw:
        stored = self._stored(resources.NODES, name, "")
        metrics = self._of_node(stored) if stored is not None else None
        if metrics is None:
            raise _not_found("nodemetrics", name)
        return metrics

    def _pods(self, request: ApiRequest, namespace: str) -> Raw:
        found = self._listed(resources.PODS, request, namespace)
        return _list("PodMetricsList", [m for m in map(self._of_pod, found) if m is not None])

    def _pod(self, namespace: str, name: str) -> Raw:
        stored = self._stored(resources.PODS, name, namespace)
        metrics = self._of_pod(stored) if stored is not None else None
        if metrics is None:
            raise _not_found("podmetrics", f"{namespace}/{name}")
        return metrics

    def _listed(self, resource: resources.Resource, request: ApiRequest, namespace: str) -> list[Stored]:
        query = request.query
        listing = self._store.list(
            resource,
            namespace=namespace,
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
        )
        return list(listing.items)

    def _stored(self, resource: resources.Resource, name: str, namespace: str) -> Stored | None:
        try:
            return self._store.get(resource, name, namespace)
        except NotFound:
            return None

    def _of_node(self, stored: Stored) -> Raw | None:
        usage = self._usage.node(stored.name)
        if usage is None:
            return None
        return {**self._head(stored, NODE_METRICS.kind), "usage": _amounts(usage)}

    def _of_pod(self, stored: Stored) -> Raw | None:
        usage = self._usage.pod(stored.namespace, stored.name)
        if usage is None:
            return None
        return {**self._head(stored, POD_METRICS.kind), "containers": _containers(usage)}

    def _head(self, stored: Stored, kind: str) -> Raw:
        now = timestamp(self._wall())
        meta: Raw = {"name": stored.name, "creationTimestamp": now}
        if stored.namespace:
            meta["namespace"] = stored.namespace
        if labels := stored.raw["metadata"].get("labels"):
            meta["labels"] = labels
        head = {"kind": kind, "apiVersion": NODE_METRICS.api_version, "metadata": meta}
        return {**head, "timestamp": now, "window": WINDOW}


def _containers(usage: Mapping[str, MeasuredUsage]) -> list[Raw]:
    return [{"name": name, "usage": _amounts(used)} for name, used in usage.items()]


def _amounts(usage: MeasuredUsage) -> Raw:
    return {"cpu": f"{round(usage.cpu_cores * 1e9)}n", "memory": f"{usage.memory_bytes // 1024}Ki"}


def _list(kind: str, items: list[Raw]) -> Raw:
    return {"kind": kind, "apiVersion": NODE_METRICS.api_version, "metadata": {}, "items": items}


def _not_found(plural: str, name: str) -> ApiError:
    return refusals.failure(404, "NotFound", f'{plural}.{NODE_METRICS.group} "{name}" not found')


def _read_only() -> ApiError:
    message = "metrics can only be read: the server does not allow this method on the requested resource"
    return refusals.failure(405, "MethodNotAllowed", message)


class Reviews:
    """The endpoint of authorization.k8s.io and authentication.k8s.io."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._judges: dict[Resource, Callable[[User, Raw], Raw]] = {
            kinds.SELF_ACCESS_REVIEWS: _self_access,
            kinds.ACCESS_REVIEWS: _access,
            kinds.LOCAL_ACCESS_REVIEWS: _access,
            kinds.SELF_RULES_REVIEWS: _rules,
            kinds.SELF_REVIEWS: _who,
            kinds.TOKEN_REVIEWS: self._token,
        }

    def answer(self, request: ApiRequest) -> ServerAnswer | None:
        resource = _addressed(request.path)
        if resource is None:
            return None
        if request.method != "POST":
            message = f"{resource.plural} can only be created: they are questions that are not stored"
            raise refusals.failure(405, "MethodNotAllowed", message, resource=resource)
        review = _read(resource, request)
        spec = review.get("spec")
        status = self._judges[resource](request.user, spec if isinstance(spec, dict) else {})
        meta = review.get("metadata") or {}
        head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        echoed = {} if spec is None else {"spec": spec}
        return json_answer({**head, **echoed, "status": status}, 201)

    def _token(self, user: User, spec: Raw) -> Raw:
        token = spec.get("token")
        if not isinstance(token, str) or not token:
            raise refusals.invalid(kinds.TOKEN_REVIEWS, "", "spec.token", "Required value")
        owner = self._tokens(token)
        if owner is None:
            return {"authenticated": False, "user": {}, "error": "the token is not known to this server"}
        return {"authenticated": True, "user": _user(owner), "audiences": spec.get("audiences") or []}


def _addressed(path: str) -> Resource | None:
    for resource in kinds.REVIEWS:
        if not path.startswith(f"{resource.path_prefix}/"):
            continue
        rest = path.removeprefix(f"{resource.path_prefix}/").rstrip("/").split("/")
        if rest == [resource.plural] and not resource.namespaced:
            return resource
        if resource.namespaced and rest[0] == "namespaces" and rest[2:] == [resource.plural]:
            return resource
    return None


def _read(resource: Resource, request: ApiRequest) -> Raw:
    try:
        if request.headers.get("content-type", "").startswith(protobuf.CONTENT_TYPE):
            review: Any = protobuf.decode(request.body)
        else:
            review = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise refusals.bad_request(f"the {resource.kind} is not readable: {error}") from error
    if not isinstance(review, dict):
        raise refusals.bad_request(f"the {resource.kind} must be a JSON object")
    if (named := review.get("kind")) not in (None, "", resource.kind):
        raise refusals.bad_request(f"a {resource.kind} is expected here, not a {str(named)[:100]}")
    return review


def _self_access(user: User, spec: Raw) -> Raw:
    _check_attributes(kinds.SELF_ACCESS_REVIEWS, spec)
    return _verdict(user.name, user.groups)


def _access(user: User, spec: Raw) -> Raw:
    _check_attributes(kinds.ACCESS_REVIEWS, spec)
    name, groups = spec.get("user"), spec.get("groups")
    groups = groups if isinstance(groups, list) else []
    if not name and not groups:
        problem = 'Invalid value: "": at least one of user or group must be specified'
        raise refusals.invalid(kinds.ACCESS_REVIEWS, "", "spec.user", problem)
    return _verdict(name, groups)


def _verdict(name: Any, groups: Sequence[Any]) -> Raw:
    if name == ANONYMOUS.name or _UNAUTHENTICATED in groups:
        return {"allowed": False, "reason": "users who are not authenticated may do nothing"}
    return {"allowed": True, "reason": _EVERYTHING_REASON}


def _check_attributes(resource: Resource, spec: Raw) -> None:
    if sum(isinstance(spec.get(field), dict) for field in _ATTRIBUTES) != 1:
        problem = f"Invalid value: null: {_ONE_OF}"
        raise refusals.invalid(resource, "", "spec.resourceAttributes", problem)


def _rules(user: User, spec: Raw) -> Raw:
    if not spec.get("namespace"):
        raise _no_namespace()
    return _ALL_RULES


def _no_namespace() -> ApiError:
    return refusals.bad_request("no namespace on request")


def _who(user: User, spec: Raw) -> Raw:
    return {"userInfo": _user(user)}


def _user(user: User) -> Raw:
    return {"username": user.name, "groups": list(user.groups)}
