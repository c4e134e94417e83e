"""The table of built-in kinds is complete: one row per resource, and the rest follows from it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moorage.api import resources
from moorage.embedded.builtin import BUILT_IN, CONTROLLERS, built_in_catalog
from moorage.embedded.controllers.controller import Controller
from moorage.store.schemas import has_status, library


def test_every_resource_has_one_row_and_known_fields():
    rows = [kind.served.resource for kind in BUILT_IN]
    assert Counter(rows) == Counter([*resources.ALL, resources.CORE_EVENTS])
    assert [str(r) for r in rows if library().kind(r.api_version, r.kind) is None] == []


def test_kinds_with_a_status_have_its_subresource():
    with_status = {kind.served.resource.kind for kind in BUILT_IN if kind.served.subresource("status")}
    assert with_status == {r.kind for r in resources.ALL if has_status(r.api_version, r.kind)}
    assert {"Pod", "Node", "Job", "CustomResourceDefinition"} <= with_status
    assert not {"Secret", "StorageClass", "Lease"} & with_status


def test_custom_kinds_have_no_status_of_the_store():
    assert not has_status("example.com/v1", "Pod")
    assert not has_status("v1", "Widget")


def test_every_controller_is_in_the_table_once():
    assert Counter(CONTROLLERS) == Counter(_subclasses(Controller))


def _subclasses(of: Any) -> list[Any]:
    """Return the controllers that have a name, wherever they are below the base class."""
    direct: list[type] = of.__subclasses__()
    found = [cls for sub in direct for cls in (sub, *_subclasses(sub))]
    return [cls for cls in found if cls.__module__.startswith("moorage.") and "name" in vars(cls)]


def test_the_catalog_serves_what_the_table_has():
    assert list(built_in_catalog().all()) == [kind.served for kind in BUILT_IN]
