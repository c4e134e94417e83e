"""The rules of custom objects, and their other versions."""

from __future__ import annotations

from mooring.api.resources import Resource
from mooring.embedded.admission.problems import Problems
from mooring.embedded.catalog.crds import structural
from mooring.embedded.catalog.crds.checking import SchemaCheck
from mooring.store import refusals
from mooring.store.objects import Raw


class CustomRules:
    """Pruning, defaults and validation of the objects of one version of a custom kind.

    A definition that is going takes no new objects. A None schema accepts everything.
    """

    def __init__(self, resource: Resource, schema: Raw | None, *, terminating: bool = False) -> None:
        self._resource = resource
        self._schema = schema
        self._check = None if schema is None else SchemaCheck(schema)
        self._terminating = terminating

    def admit(self, raw: Raw, old: Raw | None, subresource: str = "") -> Raw:
        if old is None and self._terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise refusals.failure(405, "MethodNotAllowed", why, resource=self._resource)
        if subresource == "status" and old is not None:
            status = {"status": raw["status"]} if "status" in raw else {}
            rest = {field: value for field, value in old.items() if field != "status"}
            raw = {**rest, "metadata": raw["metadata"], **status}
        if self._schema is None or self._check is None:
            return raw
        pruned = structural.prune(raw, self._schema, root=True)
        filled: Raw = structural.fill_defaults(pruned, self._schema)
        problems = Problems()
        self._check.check(filled, problems)
        if problems:
            raise problems.refusal(self._resource, str(raw["metadata"].get("name") or ""))
        return filled


class VersionView:
    """Another version of stored objects, with conversion None: only the apiVersion differs."""

    def __init__(self, served: Resource, stored: Resource) -> None:
        self._served, self._stored = served.api_version, stored.api_version

    def inward(self, raw: Raw) -> Raw:
        return {**raw, "apiVersion": self._stored}

    def outward(self, raw: Raw) -> Raw:
        return raw if raw["apiVersion"] == self._served else {**raw, "apiVersion": self._served}

    def field(self, path: str) -> str:
        return path
