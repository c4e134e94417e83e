"""The rules of a pod's volumes: names, and exactly one source each."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.embedded.admission import names
from mooring.embedded.admission.problems import Problems
from mooring.embedded.admission.quantities import amount
from mooring.store.objects import Raw

# What a source cannot do without.
_NEEDED = {
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
    "configMap": "name",
    "hostPath": "path",
    "csi": "driver",
    "ephemeral": "volumeClaimTemplate",
}


def check_volumes(volumes: Sequence[Raw], path: str, problems: Problems) -> set[str]:
    """Gives the names that mounts may use."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name") or ""
        _check_sources(volume, here, problems)
        if not name:
            problems.required(f"{here}.name")
        elif sentences := names.label(name):
            problems.all_invalid(f"{here}.name", name, sentences)
        if name in seen:
            problems.duplicate(f"{here}.name", name)
        seen.add(name)
    return seen


def _check_sources(volume: Raw, path: str, problems: Problems) -> None:
    sources = [field for field in volume if field != "name"]
    if not sources:
        problems.required(path, "must specify a volume type")
    for extra in sources[1:]:
        problems.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    for source in sources[:1]:
        needed = _NEEDED.get(source)
        if needed and isinstance(volume[source], dict) and not volume[source].get(needed):
            problems.required(f"{path}.{source}.{needed}")
    limit = (volume.get("emptyDir") or {}).get("sizeLimit")
    if limit is not None:
        nanos = amount(limit, f"{path}.emptyDir.sizeLimit", problems)
        if nanos is not None and nanos < 0:
            problems.forbidden(
                f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity"
            )
