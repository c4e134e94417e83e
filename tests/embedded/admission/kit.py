"""A store with the rules of an API server, and small objects that they accept."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Invalid
from moorage.api.resources import Resource
from moorage.embedded.builtin import strict_rules
from moorage.store.objects import Raw
from moorage.store.store import Store
from tests.store.kit import Wall, new_store


def strict_store(wall: Wall | None = None, **options: Any) -> Store:
    return new_store(wall, rules=strict_rules(), **options)


def container(name: str = "main", **more: Any) -> Raw:
    return {"name": name, "image": "nginx:1", **more}


def pod(name: str = "a", *, meta: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": name, "namespace": "default", **(meta or {})}
    return {"metadata": metadata, "spec": {"containers": [container()], **spec}}


def named(name: str = "x", namespace: str = "default", **fields: Any) -> Raw:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **fields}


def workload(name: str = "web", **spec: Any) -> Raw:
    """A selector and a template that go together, for all kinds of apps/v1."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()]}}
    return named(name, spec={"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec})


def problems(resource: Resource, raw: Raw, store: Store | None = None) -> list[str]:
    """What is wrong with a new object, as `field: message`; empty if it is created."""
    store = store or strict_store()
    try:
        store.create(resource, raw)
    except Invalid as error:
        return causes(error)
    return []


def update_problems(store: Store, resource: Resource, raw: Raw, subresource: str = "") -> list[str]:
    try:
        store.replace(resource, raw, subresource=subresource)
    except Invalid as error:
        return causes(error)
    return []


def causes(error: Invalid) -> list[str]:
    assert error.status.details is not None
    return [f"{cause.field}: {cause.message}" for cause in error.status.details.causes]


def case(identifier: str, *values: Any) -> Any:
    return pytest.param(*values, id=identifier)
