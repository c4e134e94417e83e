"""Remedies for pods that a ResourceQuota refuses, read from the message of the API server."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moorage.api.errors import QuantityError
from moorage.api.kubectl import patch
from moorage.api.quantity import NANO, parse
from moorage.explain.trying import Remedy

_EXCEEDED = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
"""As the quota admission of kube-apiserver writes it (plugin/resourcequota/controller.go)."""
MAX_MESSAGE = 4096


def quota_remedies(message: str, namespace: str, missing: int) -> Iterator[Remedy]:
    """Propose a quota that lets the missing pods in, if the message is about a quota."""
    found = _EXCEEDED.search(message[:MAX_MESSAGE])
    if found is None:
        return
    name = found[1]
    try:
        requested, used, limited = (_amounts(text) for text in found.groups()[1:])
        hard = {key: used.get(key, 0) + missing * amount for key, amount in requested.items()}
        raised = {key: _text(amount) for key, amount in hard.items() if amount > limited.get(key, amount)}
    except (QuantityError, ValueError):
        return
    listed = " and ".join(f"{key}={amount}" for key, amount in sorted(raised.items()))
    text = f"Raise the ResourceQuota {namespace}/{name} to {listed}, or delete pods in {namespace}"
    command = patch(f"resourcequota/{name}", {"spec": {"hard": raised}}, namespace=namespace)
    yield Remedy(text, 0, "", command=command)


def _amounts(text: str) -> dict[str, int]:
    """Return resource → nano-units of `pods=1,requests.cpu=500m`."""
    pairs = (part.split("=", 1) for part in text.split(","))
    return {key: parse(value) for key, value in pairs}


def _text(nanos: int) -> str:
    """Return a quantity in whole units, or in thousandths."""
    return str(nanos // NANO) if nanos % NANO == 0 else f"{-(-nanos * 1000 // NANO)}m"
