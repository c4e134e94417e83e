"""Rows of configuration, identities, access rights and quotas, and of kinds without columns of their own."""

from __future__ import annotations

from mooring.embedded.catalog.printing.columns import AGE, NAME, Cells, Column, Printer, integer, plain, wide
from mooring.embedded.catalog.printing.values import age, dig, mapping, maps, name_of, number, text
from mooring.store.objects import Raw


def _config_map(raw: Raw, now: float) -> Cells:
    return [name_of(raw), len(mapping(raw, "data")) + len(mapping(raw, "binaryData")), age(raw, now)]


def _secret(raw: Raw, now: float) -> Cells:
    return [name_of(raw), text(raw, "type", default="Opaque"), len(mapping(raw, "data")), age(raw, now)]


def _service_account(raw: Raw, now: float) -> Cells:
    return [name_of(raw), age(raw, now)]


def _role_binding(raw: Raw, now: float) -> Cells:
    role = f"{text(raw, 'roleRef', 'kind')}/{text(raw, 'roleRef', 'name')}"
    subjects = (_subjects(raw, kind) for kind in ("User", "Group", "ServiceAccount"))
    return [name_of(raw), role, age(raw, now), *subjects]


def _subjects(raw: Raw, kind: str) -> str:
    found = (subject for subject in maps(raw, "subjects") if subject.get("kind") == kind)
    return ", ".join("/".join(filter(None, (text(s, "namespace"), text(s, "name")))) for s in found)


def _quota(raw: Raw, now: float) -> Cells:
    hard, used = mapping(raw, "status", "hard"), mapping(raw, "status", "used")
    lines = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    requests = [line for name, line in lines.items() if not name.startswith("limits.")]
    limits = [line for name, line in lines.items() if name.startswith("limits.")]
    return [name_of(raw), ", ".join(requests), ", ".join(limits), age(raw, now)]


def _scale(raw: Raw, now: float) -> Cells:
    desired, present = number(raw, "spec", "replicas"), number(raw, "status", "replicas")
    return [name_of(raw), desired, present, age(raw, now)]


def _created(raw: Raw, now: float) -> Cells:
    return [name_of(raw), dig(raw, "metadata", "creationTimestamp")]


CONFIG_MAPS = Printer((NAME, integer("Data"), AGE), _config_map)
SECRETS = Printer((NAME, *plain("Type"), integer("Data"), AGE), _secret)
SERVICE_ACCOUNTS = Printer((NAME, AGE), _service_account)
ROLE_BINDINGS = Printer(
    (NAME, *plain("Role"), AGE, *wide("Users", "Groups", "ServiceAccounts")), _role_binding
)
RESOURCE_QUOTAS = Printer((NAME, *plain("Request", "Limit"), AGE), _quota)
SCALES = Printer((NAME, integer("Desired"), integer("Available"), AGE), _scale)
CREATED_AT = Printer((NAME, Column("Created At", "date", description="When it was created.")), _created)
"""For built-in kinds without columns of their own, such as roles and definitions of custom kinds."""
