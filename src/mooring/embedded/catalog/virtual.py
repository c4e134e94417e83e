"""Kinds that are served but not stored: usage, and questions about identity and rights.

Only their names are here, for discovery and OpenAPI; `metrics` and `reviews` answer them.
"""

from __future__ import annotations

from mooring.api.resources import Resource, custom
from mooring.embedded.catalog.kinds import Served

_AUTHORIZATION, _AUTHENTICATION, _METRICS = "authorization.k8s.io", "authentication.k8s.io", "metrics.k8s.io"

LOCAL_ACCESS_REVIEWS = custom(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview")
SELF_ACCESS_REVIEWS = custom(
    _AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
)
SELF_RULES_REVIEWS = custom(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False)
ACCESS_REVIEWS = custom(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", False)
SELF_REVIEWS = custom(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview", False)
TOKEN_REVIEWS = custom(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview", False)
NODE_METRICS = custom(_METRICS, "v1beta1", "nodes", "NodeMetrics", False)
POD_METRICS = custom(_METRICS, "v1beta1", "pods", "PodMetrics")

REVIEWS: tuple[Resource, ...] = (
    SELF_REVIEWS,
    TOKEN_REVIEWS,
    LOCAL_ACCESS_REVIEWS,
    SELF_ACCESS_REVIEWS,
    SELF_RULES_REVIEWS,
    ACCESS_REVIEWS,
)
VIRTUAL: tuple[Served, ...] = (
    *(Served(resource, resource.kind.lower(), verbs=("create",)) for resource in REVIEWS),
    *(Served(resource, "", verbs=("get", "list")) for resource in (NODE_METRICS, POD_METRICS)),
)
