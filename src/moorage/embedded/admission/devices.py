"""The strategies of dynamic resource allocation: defaults as in pkg/apis/resource/v1/defaults.go."""

from __future__ import annotations

from moorage.embedded.admission.strategy import KindStrategy
from moorage.store.objects import Raw


def _fill_in_spec(spec: Raw) -> Raw:
    devices = spec.get("devices") or {}
    if devices.get("requests"):
        devices = {**devices, "requests": [_fill_in_request(request) for request in devices["requests"]]}
    return {**spec, "devices": devices}


def _fill_in_request(request: Raw) -> Raw:
    if request.get("exactly"):
        request = {**request, "exactly": _fill_in_amount(request["exactly"])}
    if request.get("firstAvailable"):
        request = {**request, "firstAvailable": [_fill_in_amount(one) for one in request["firstAvailable"]]}
    return request


def _fill_in_amount(given: Raw) -> Raw:
    wanted = {"allocationMode": "ExactCount", **given}
    if wanted["allocationMode"] == "ExactCount":
        wanted.setdefault("count", 1)
    if wanted.get("tolerations"):
        wanted["tolerations"] = [{"operator": "Equal", **toleration} for toleration in wanted["tolerations"]]
    return wanted


def _default_claim(raw: Raw) -> Raw:
    return {**raw, "spec": _fill_in_spec(raw.get("spec") or {})}


def _default_template(raw: Raw) -> Raw:
    spec = raw.get("spec") or {}
    return {**raw, "spec": {"metadata": {}, **spec, "spec": _fill_in_spec(spec.get("spec") or {})}}


RESOURCE_CLAIMS = KindStrategy(default=_default_claim, first_status={}, generation=False)
RESOURCE_CLAIM_TEMPLATES = KindStrategy(default=_default_template, generation=False)
