"""Questions about identity and rights: who am I, may I, whose token is this.

The server knows one kind of rights: whoever is authenticated may do everything. Roles and bindings are stored
and not consulted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from moorage.api.errors import ApiError
from moorage.api.resources import Resource
from moorage.embedded import protobuf
from moorage.embedded.catalog import kinds
from moorage.embedded.http import ANONYMOUS, Answer, Request, json_answer
from moorage.serving.certificates import User
from moorage.store import refusals
from moorage.store.objects import Raw

Tokens: TypeAlias = Callable[[str], User | None]
"""Whose token it is; None for one that is not known."""

_EVERYTHING_REASON = "whoever is authenticated may do everything here"
_UNAUTHENTICATED = "system:unauthenticated"
_ATTRIBUTES = ("resourceAttributes", "nonResourceAttributes")
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_ALL_RULES: Raw = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


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

    def answer(self, request: Request) -> Answer | None:
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


def _read(resource: Resource, request: Request) -> Raw:
    try:
        if request.headers.get("content-type", "").startswith(protobuf.CONTENT_TYPE):
            review: Any = protobuf.decode(request.body)
        else:
            review = msgspec.json.decode(request.body)
    except (ValueError, RecursionError) as error:
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
        return {"allowed": False, "reason": "whoever is not authenticated may do nothing here"}
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
