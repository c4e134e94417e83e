"""Kinds that hold data: config maps, secrets, leases, events, and the bindings of RBAC."""

from __future__ import annotations

import base64
import binascii

from mooring.embedded.admission import names
from mooring.embedded.admission.kinds import Rules
from mooring.embedded.admission.problems import Problems
from mooring.store.objects import Raw

_SIZE_LIMIT = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_NOTE_LIMIT = 1024
_OLD_EVENT_FIELDS = (
    "deprecatedSource",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
    "deprecatedCount",
)


def _check_config_map(raw: Raw, problems: Problems) -> None:
    texts, blobs = raw.get("data") or {}, raw.get("binaryData") or {}
    for field, data in (("data", texts), ("binaryData", blobs)):
        for key in data:
            problems.all_invalid(f"{field}[{key}]", key, names.config_key(key))
    for key in blobs.keys() & texts.keys():
        problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    size = sum(len(text.encode()) for text in texts.values())
    size += sum(_decoded_size(blob, f"binaryData[{key}]", problems) for key, blob in blobs.items())
    if size > _SIZE_LIMIT:
        problems.too_long("", _SIZE_LIMIT)


def _check_fixed_data(new: Raw, old: Raw, problems: Problems) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        problems.forbidden("immutable", _FIXED)
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            problems.forbidden(field, _FIXED)


def _default_secret(raw: Raw) -> Raw:
    """`stringData` is written into `data` and never stored."""
    raw = {"type": "Opaque", **raw}
    texts = raw.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        raw["data"] = {**(raw.get("data") or {}), **encoded}
    return raw


def _check_secret(raw: Raw, problems: Problems) -> None:
    data = raw.get("data") or {}
    for key in data:
        problems.all_invalid(f"data[{key}]", key, names.config_key(key))
    if sum(_decoded_size(blob, f"data[{key}]", problems) for key, blob in data.items()) > _SIZE_LIMIT:
        problems.too_long("data", _SIZE_LIMIT)


def _check_secret_update(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("type", new["type"], old.get("type"))
    _check_fixed_data(new, old, problems)


def _decoded_size(blob: str, path: str, problems: Problems) -> int:
    try:
        return len(base64.b64decode(blob, validate=True))
    except (binascii.Error, ValueError) as error:
        problems.invalid(path, blob[:40], f"must be base64: {error}")
        return 0


def _check_lease(raw: Raw, problems: Problems) -> None:
    spec = raw.get("spec") or {}
    problems.positive("spec.leaseDurationSeconds", spec.get("leaseDurationSeconds"))
    problems.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def _check_new_event(raw: Raw, problems: Problems) -> None:
    """Events in the new form must say more. Old ones, told by their old fields, are taken as they are."""
    if any(field in raw for field in _OLD_EVENT_FIELDS) or raw.get("eventTime") is None:
        return
    for field in ("reportingController", "reportingInstance", "action", "reason"):
        if not raw.get(field):
            problems.required(field)
    if raw.get("reportingController"):
        name = raw["reportingController"]
        problems.all_invalid("reportingController", name, names.qualified(name))
    for field in ("reportingInstance", "action", "reason"):
        if len(raw.get(field) or "") > 128:
            problems.invalid(field, "", "can have at most 128 characters")
    if len((raw.get("note") or "").encode()) > _NOTE_LIMIT:
        problems.invalid("note", "", f"can have at most {_NOTE_LIMIT} characters")
    if raw.get("type") not in ("Normal", "Warning"):
        problems.invalid("type", "", "has invalid value: " + str(raw.get("type") or ""))


def _check_role_binding_update(new: Raw, old: Raw, problems: Problems) -> None:
    problems.unchanged("roleRef", new.get("roleRef"), old.get("roleRef"), "cannot change roleRef")


CONFIG_MAPS = Rules(check=_check_config_map, check_update=_check_fixed_data)
SECRETS = Rules(default=_default_secret, check=_check_secret, check_update=_check_secret_update)
LEASES = Rules(check=_check_lease)
EVENTS = Rules(check_new=_check_new_event)
ROLES = Rules(name=names.path_segment)
ROLE_BINDINGS = Rules(check_update=_check_role_binding_update, name=names.path_segment)
